// The style of reports: Okabe and Ito's colours, which colour-blind readers tell apart, lighter where the page is dark.
//
//   html += kTraceStyle;
#pragma once

namespace ridge {

inline constexpr const char* kTraceStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#5c6670;--edge:#d5dae0;--soft:#f4f6f8;
--compute:#0072b2;--attention:#56b4e9;--named:#7a8fa6;--named2:#b3c0cd;--wait:#d55e00;--read:#009e73;--queue:#a9dccb;
--pinned:#cfd5dc;--slot:#f0dfa6;--init:#e69f00;--pass:#3d4b5c;--pass2:#8a97a6;--bound:#cc79a7;--rest:#e3e7eb}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6eaee;--dim:#9aa5b1;--edge:#39424d;--soft:#1d232a;
--compute:#4ba3e0;--attention:#8fd0f5;--named:#8798aa;--named2:#5f6f80;--wait:#f0813a;--read:#2fc297;--queue:#1f5e4d;
--pinned:#444e5a;--slot:#6b5c26;--init:#f0b429;--pass:#a9b7c6;--pass2:#66727f;--bound:#e29ac4;--rest:#343d47}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:20px 16px 48px}
h1{font-size:1.45rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.08rem;margin:34px 0 4px}
h3{font-size:.95rem;margin:16px 0 4px}
p{margin:4px 0 10px}.dim,.chart,.legend,figcaption{color:var(--dim)}.dim{font-size:.9rem}
.warn{border-left:4px solid var(--wait);padding:6px 12px;background:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.tiles div{background:var(--soft);border:1px solid var(--edge);border-radius:6px;padding:9px 12px}
.tiles b{display:block;font-size:1.3rem;font-weight:600;white-space:nowrap}
.tiles span{font-size:.83rem;color:var(--dim)}
svg{display:block;width:100%;height:100%}
.bar{height:26px;border-radius:4px;overflow:hidden;margin:6px 0}
.legend{font-size:.83rem;display:flex;flex-wrap:wrap;gap:2px 16px;margin:6px 0}
.legend span{display:inline-flex;align-items:center}
svg.swatch{display:inline-block;width:12px;height:12px;margin-right:6px;vertical-align:-1px;flex:none;border-radius:2px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;margin:6px 0}
td,th{padding:3px 14px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--edge)}
td.n,th.n{text-align:right;white-space:nowrap}th{font-weight:600;color:var(--dim)}
.sum td{font-weight:600}.facts th{white-space:nowrap}.facts td{overflow-wrap:anywhere}
.rows{display:grid;grid-template-columns:minmax(7em,max-content) 1fr max-content;gap:5px 12px;
align-items:center;font-size:.88rem}
.rows div{height:16px}.rows span:nth-child(3n){text-align:right;font-variant-numeric:tabular-nums}
.chart{display:grid;grid-template-columns:5.6em 1fr;column-gap:8px;font-size:.8rem;margin:14px 0 4px}
.up{display:flex;flex-direction:column;justify-content:space-between;text-align:right;margin:-.6em 0}
.area{border-left:1px solid var(--edge);border-bottom:1px solid var(--edge);min-width:0;
background:linear-gradient(var(--edge),var(--edge)) 0 50%/100% 1px no-repeat}
.along{grid-column:2;display:flex;justify-content:space-between;padding-top:3px}
.lanes{display:grid;grid-template-columns:10.5em 1fr;column-gap:8px;font-size:.8rem;row-gap:4px;margin:12px 0 6px}
.lanes>.name{color:var(--dim);text-align:right;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;
align-self:center}
.lanes>.lane{position:relative;min-width:0;background:var(--soft)}
.lanes>.along{color:var(--dim)}
.names{position:relative;color:var(--dim)}
.names span{position:absolute;right:0;max-width:100%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;
transform:translateY(-50%);line-height:1.2}
.tag{position:absolute;top:0;bottom:0;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;padding:0 6px;
color:var(--bg);font-weight:600;line-height:20px}
.lane rect.pass,.lane rect.pass2,.lane rect.reading{stroke:var(--bg);stroke-width:.6;vector-effect:non-scaling-stroke}
.computed{fill:var(--compute)}.attention{fill:var(--attention)}.named{fill:var(--named)}.named2{fill:var(--named2)}
.waited{fill:var(--wait)}.reading{fill:var(--read)}.queued{fill:var(--queue)}.pinned{fill:var(--pinned)}
.slot{fill:var(--slot)}.init{fill:var(--init)}.pass{fill:var(--pass)}.pass2{fill:var(--pass2)}.bound{fill:var(--bound)}
.rest{fill:var(--rest)}.releasing{fill:var(--bound)}
.a0{fill:#0072b2}.a1{fill:#56b4e9}.a2{fill:#009e73}.a3{fill:#e69f00}.a4{fill:#cc79a7}.a5{fill:#d55e00}.a6{fill:#8a97a6}
.a7{fill:#f0e442}.a8{fill:#5a4fa2}.a9{fill:#9c6b30}.a10{fill:#9ad9c4}.a11{fill:#c9c2ee}.a12{fill:#f5b78a}
.a13{fill:#3d4b5c}.a14{fill:#d9a0c0}
.line{fill:none!important;stroke-width:1.6;vector-effect:non-scaling-stroke}
.line.computed{stroke:var(--compute)}.line.reading{stroke:var(--read)}.line.memory{stroke:var(--compute)}
.limit{stroke:var(--wait);stroke-width:1.6;stroke-dasharray:6 4;vector-effect:non-scaling-stroke}
.roof{stroke:var(--bound);stroke-width:1.6;stroke-dasharray:6 4;vector-effect:non-scaling-stroke}
.memory{fill:var(--compute);opacity:.22}.line.memory{opacity:1}.readarea{fill:var(--read);opacity:.25}
.mark{fill:var(--fg);opacity:.09}
i.limit,i.roof{display:inline-block;width:18px;border-top:2px dashed var(--wait);margin-right:6px}
i.roof{border-color:var(--bound)}
@media(max-width:640px){body{font-size:14px}.lanes{grid-template-columns:6.2em 1fr}
.chart{grid-template-columns:4.6em 1fr}
.rows{grid-template-columns:5.5em 1fr max-content}.tiles{grid-template-columns:repeat(2,1fr)}.tiles b{font-size:1.1rem}
td,th{padding-right:9px}.along span:nth-child(even){display:none}}
@media print{main{max-width:none}}
)css";

}  // namespace ridge
