import numpy as np, gguf
rng=np.random.default_rng(7)
W,L,V,E,K,H,S,heads,kv,hd=32,2,48,5,2,12,20,4,2,8
w=gguf.GGUFWriter('/tmp/q2/qwen2moe.gguf','qwen2moe')
w.add_block_count(L);w.add_context_length(128);w.add_embedding_length(W);w.add_feed_forward_length(40)
w.add_head_count(heads);w.add_head_count_kv(kv);w.add_layer_norm_rms_eps(1e-6);w.add_vocab_size(V)
w.add_rope_freq_base(1e6);w.add_expert_count(E);w.add_expert_used_count(K);w.add_expert_feed_forward_length(H)
w.add_expert_shared_feed_forward_length(S)
w.add_tokenizer_model('none')
def t(n,*s,scale=None): w.add_tensor(n,(rng.standard_normal(s)*(scale or 1.6/np.sqrt(s[-1]))).astype(np.float32))
def norm(n,s): w.add_tensor(n,(1+0.2*rng.standard_normal(s)).astype(np.float32))
t('token_embd.weight',V,W,scale=1.0);norm('output_norm.weight',W);t('output.weight',V,W)
for i in range(L):
    b=f'blk.{i}.'
    norm(b+'attn_norm.weight',W);norm(b+'ffn_norm.weight',W)
    t(b+'attn_q.weight',heads*hd,W);t(b+'attn_q.bias',heads*hd,scale=.3)
    t(b+'attn_k.weight',kv*hd,W);t(b+'attn_k.bias',kv*hd,scale=.3)
    t(b+'attn_v.weight',kv*hd,W);t(b+'attn_v.bias',kv*hd,scale=.3)
    t(b+'attn_output.weight',W,heads*hd)
    t(b+'ffn_gate_inp.weight',E,W);t(b+'ffn_gate_exps.weight',E,H,W);t(b+'ffn_up_exps.weight',E,H,W);t(b+'ffn_down_exps.weight',E,W,H)
    t(b+'ffn_gate_inp_shexp.weight',W,scale=.3);t(b+'ffn_gate_shexp.weight',S,W);t(b+'ffn_up_shexp.weight',S,W);t(b+'ffn_down_shexp.weight',W,S)
w.write_header_to_file();w.write_kv_data_to_file();w.write_tensors_to_file();w.close()
