#include "report/page_style.h"

#include <fmt/format.h>

#include "report/markup.h"

namespace ridge {
namespace {

constexpr const char* kPageStyle = R"(<style>
:root{--ground:#fff;--text:#1f2933;--faint:#616e7c;--grid:#e4e7eb;--bad:#b23c00}
@media(prefers-color-scheme:dark){:root{--ground:#16191d;--text:#e4e7eb;--faint:#9aa5b1;--grid:#323f4b;--bad:#f0a060}}
body{background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:0 auto;padding:20px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 8px}p{margin:6px 0}.faint{color:var(--faint)}
svg{width:100%;min-width:620px;height:auto;display:block}.wide{overflow-x:auto}.bad{color:var(--bad)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:3px 8px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child,th.l,td.l{text-align:left}tr.phase td{font-weight:600}
pre{font:12px/1.45 ui-monospace,monospace}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
</style>
)";

}  // namespace

std::string page_begin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{}</title>\n{}</head><body>\n",
      markup(title), kPageStyle);
}

}  // namespace ridge
