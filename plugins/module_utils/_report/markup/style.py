# SPDX-License-Identifier: GPL-3.0-or-later

"""The style sheet of the HTML report. The page is dark if the reader's system prefers dark colors. In print, collapsed
sections stay collapsed, except for waived findings and findings that follow from others.
"""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;
--ground:#f5f6f4;--card:#fff;--ink:#1b231f;--soft:#566159;--line:#dfe4e0;--mute-bg:#edf0ed;
--good:#17693f;--bad:#b3261e;--warn:#825500;--wait:#3f5190;--good-bg:#e1f2e8;--bad-bg:#fbe7e5;--warn-bg:#faefd5;--wait-bg:#e6eaf7;
--best:#bfe3cd;--near:#ddf0d2;--less:#f1f3c6;--fail:#b3261e;--fail-ink:#fff}
@media (prefers-color-scheme:dark){:root{
--ground:#131715;--card:#1b211e;--ink:#e5eae7;--soft:#a0aca5;--line:#2d3531;--mute-bg:#252c28;
--good:#68cb9b;--bad:#ff8f85;--warn:#e3b65a;--wait:#a5b5ee;--good-bg:#16301f;--bad-bg:#3b1e1b;--warn-bg:#332a10;--wait-bg:#20273e;
--best:#1d5237;--near:#38502a;--less:#4d4d1f;--fail:#ff8f85;--fail-ink:#2a0603}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
  "Helvetica Neue","Open Sans",sans-serif}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 24px}
a{color:inherit;text-underline-offset:2px}
:focus-visible{outline:2px solid var(--wait);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-9999px}.skip:focus{left:8px;top:8px;padding:8px 12px;background:var(--card)}
code,pre{font:13px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace}
code{overflow-wrap:anywhere}
p{margin:0 0 6px;overflow-wrap:anywhere}
ul,ol{overflow-wrap:anywhere}
h2,h3,h4{line-height:1.3;margin:0}
b,h2,h3{font-weight:620}

header{padding-top:36px}
.brand{color:var(--soft);letter-spacing:.04em;margin:0}
h1{margin:.05em 0 0;font-size:clamp(32px,7vw,46px);line-height:1.15;font-weight:660;letter-spacing:-.015em}
header.good h1{color:var(--good)}header.bad h1{color:var(--bad)}header.neutral h1{color:var(--wait)}
header.waived h1{color:var(--warn)}
.summary{margin:.3em 0 0;font-size:18px;max-width:75ch}
nav ol{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:6px;list-style:none;margin:24px 0;
  padding:0}
nav a{display:block;height:100%;padding:8px 10px;border-radius:8px;background:var(--card);border:1px solid var(--line);
  border-top:4px solid var(--soft);
text-decoration:none;line-height:1.25}
nav a:hover{background:var(--mute-bg)}
nav small{display:block;color:var(--soft);font-size:12.5px}
nav li.open a{border-top-color:var(--good)}nav li.closed a,nav li.unreadable a{border-top-color:var(--bad)}
nav li.pending a{border-top-color:var(--wait)}

.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 22px;margin:0 0 16px}
.card>h2{font-size:20px;margin:0 0 10px}
.card>h3{font-size:15px;margin:14px 0 6px}
.card>ul{padding-left:20px;margin:0 0 8px}
.stage{scroll-margin-top:12px}
.stage>h2,.card>h3{text-transform:capitalize}.card>h3{text-transform:none}
.state{font-size:14px;font-weight:400;color:var(--soft);text-transform:none;margin-left:6px}
.stage.closed .state,.stage.unreadable .state{color:var(--bad)}.stage.open .state{color:var(--good)}

.filter{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:0 0 16px;padding:0;border:0}
.filter legend{float:left;padding:0;margin-right:6px;color:var(--soft)}
.tile{display:inline-flex;gap:5px;align-items:center;padding:4px 12px 4px 8px;border-radius:999px;
  background:var(--card);border:1px solid var(--line);
cursor:pointer}
.tile b{font-variant-numeric:tabular-nums}
.tile.none{color:var(--soft)}
.tile input{margin:0;accent-color:var(--wait)}
body:has(#show-fail:not(:checked)) .finding.fail,body:has(#show-unknown:not(:checked)) .finding.unknown,
body:has(#show-skipped:not(:checked)) .finding.skipped,body:has(#show-warn:not(:checked)) .finding.warn,
body:has(#show-waived:not(:checked)) .finding.waived,body:has(#show-pass:not(:checked)) .finding.pass{display:none}

.badge{display:inline-block;min-width:62px;padding:1px 8px;border-radius:999px;text-align:center;font-size:12.5px;
  font-weight:500;
background:var(--mute-bg);color:var(--soft)}
.badge.pass{background:var(--good-bg);color:var(--good)}.badge.fail{background:var(--bad-bg);color:var(--bad)}
.badge.unknown,.badge.warn{background:var(--warn-bg);color:var(--warn)}
.badge.waived{background:var(--wait-bg);color:var(--wait)}
article.finding{padding:12px 0 12px 14px;border-left:3px solid var(--line);margin:0 0 10px}
article.fail{border-left-color:var(--bad)}article.unknown,article.warn{border-left-color:var(--warn)}
article.waived{border-left-color:var(--wait)}
article.finding{padding-top:2px;padding-bottom:2px}
article h3{font-size:15px;font-weight:400;margin:0 0 5px}
.subject{font-weight:600;overflow-wrap:anywhere}
article dl,.steps dl{display:grid;grid-template-columns:1fr 1fr;gap:4px 24px;margin:0 0 6px}
article dl div,.steps dl div{min-width:0}
dt{color:var(--soft);font-size:12.5px}dd{margin:0;overflow-wrap:anywhere;white-space:pre-line}
.remedy{font-weight:450}
.steps{margin:0;padding-left:24px}.steps li{margin:0 0 12px}.steps li::marker{color:var(--soft)}
.steps p{margin-bottom:3px}
.waivers{list-style:none;padding:0!important;margin:0}
.waivers>li{padding:8px 0;border-top:1px solid var(--line)}.waivers>li:first-child{border-top:0}
.waivers ul{padding-left:20px;margin:4px 0}
.waivers p{margin-bottom:2px}.reason{font-weight:500}
small{display:block;color:var(--soft)}
.more{color:var(--soft);font-size:13.5px;margin-top:6px}
details{margin-top:8px}summary{cursor:pointer;color:var(--soft);width:fit-content}
section>details{margin-bottom:12px}
details h4,details.pass h3{margin:12px 0 4px;font-size:inherit;font-weight:500}
pre{max-height:480px;overflow:auto;padding:12px;border-radius:8px;background:var(--mute-bg);font-size:12px;
  white-space:pre-wrap;overflow-wrap:anywhere}

.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;width:100%}
caption{text-align:left;color:var(--soft);font-size:13.5px;padding:10px 0 4px}
th,td{padding:5px 12px 5px 0;border-top:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:anywhere;
  font-weight:400;min-width:112px}
thead th{border-top:0;color:var(--soft);font-weight:500;font-size:13px}
.number{text-align:right;font-variant-numeric:tabular-nums}
.numbers thead th:nth-child(n+3){text-align:right}

.figures{display:flex;flex-wrap:wrap;gap:22px 36px;margin:0 0 16px}.finding+.figures{margin-top:18px}
.figures:empty{display:none}
figure details{margin:0}figure summary{color:inherit}
figure{margin:0;min-width:0;max-width:100%}
figcaption{margin-bottom:6px}figcaption b{display:block}.caption{color:var(--ink)}
figcaption span,.caption span{color:var(--soft);font-size:13.5px}
.grid{width:auto;font-size:12px;line-height:1.2;font-variant-numeric:tabular-nums;border-collapse:separate;
  border-spacing:2px}
.grid th,.grid td{padding:0;border:0;min-width:0;vertical-align:middle}
.grid td{min-width:34px;height:26px;padding:0 4px;text-align:center;border-radius:3px;white-space:nowrap}
.grid thead th{vertical-align:bottom;font-size:12px}
.grid thead span{display:block;max-height:120px;max-width:34px;margin:0 auto;writing-mode:vertical-rl;
  transform:rotate(180deg);overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}
.grid thead .corner{vertical-align:bottom}
.grid thead .corner span{writing-mode:horizontal-tb;transform:none;max-width:none;white-space:nowrap;padding-right:8px}
.grid tbody th,.grid tfoot th{position:sticky;left:0;background:var(--card);padding-right:8px}
.grid tbody th span,.grid tfoot th span{display:block;max-width:150px;overflow:hidden;text-overflow:ellipsis;
  white-space:nowrap}
.grid .middle,.grid tfoot th{color:var(--soft)}
.best{background:var(--best)}.near{background:var(--near)}.less{background:var(--less)}
.grid .fail,.key.fail{background:var(--fail);color:var(--fail-ink);font-weight:700}
.grid .unknown,.key.unknown{background:repeating-linear-gradient(135deg,var(--warn-bg) 0 4px,var(--mute-bg) 4px 8px);
  color:var(--warn);font-weight:700}
.grid .waived,.key.waived{background:var(--wait-bg);color:var(--wait)}
.grid .seen,.key.seen{background:var(--mute-bg)}
.grid .self{background:linear-gradient(to top right,transparent 47%,var(--line) 47% 53%,transparent 53%)}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:8px 0 0;padding:0;color:var(--soft);
  font-size:13px}
.legend li{display:flex;align-items:center}
.key{width:26px;height:17px;margin-right:6px;border-radius:3px;text-align:center;font-weight:600;font-style:normal;
font-size:11px;line-height:17px;color:var(--ink);border:1px solid var(--line)}

.wide{flex:1 1 100%}
.trend{display:block}.trend line{stroke:var(--line);stroke-dasharray:3}
.trend polyline{fill:none;stroke:var(--soft);stroke-width:1.5}.trend circle{fill:var(--good)}
.trend rect{fill:var(--soft)}.trend rect.band{fill:var(--line)}
.trend rect.some{fill:var(--warn)}.trend rect.gap{fill:var(--line)}
.trend.bad polyline{stroke:var(--warn)}.trend.bad circle{fill:var(--warn)}
.map{display:block;width:100%;height:auto;min-width:640px}
.map text{font-size:11px;fill:var(--ink);text-anchor:middle}
.box rect{fill:var(--mute-bg);stroke:var(--soft);stroke-width:1}
.box.group rect{stroke-dasharray:4 3}.box.group text{fill:var(--soft)}
.box.bad>rect{fill:var(--bad-bg);stroke:var(--bad);stroke-width:2}.box.bad text{fill:var(--bad);font-weight:600}
.box .hca{fill:var(--soft);stroke:var(--card);stroke-dasharray:none;stroke-width:1}.box .hca.bad{fill:var(--bad)}
.map line{stroke:var(--soft);stroke-width:1.2;opacity:.55}
.map .rail1{stroke:var(--wait)}.map .rail2{stroke:var(--good)}.map .rail3{stroke:var(--warn)}
.map line.bad{stroke:var(--bad);stroke-width:2.6;stroke-dasharray:7 4;opacity:1}
.marked{margin:8px 0 0;padding-left:20px;font-size:13.5px}

.sheet{border-top:1px solid var(--line);padding-top:8px;scroll-margin-top:12px}.sheet>summary{color:var(--ink)}
.sheet h4{margin:8px 0 2px}.sheet ul{margin:0;padding-left:20px}
.sheet>figure{margin-top:12px}td ul{margin:0;padding-left:16px}
.said.bad{color:var(--bad);font-weight:600}.said.unknown{color:var(--warn)}
.tree{display:block;width:100%;height:auto;min-width:900px;margin-top:8px}
.tree text{font-size:11.5px;fill:var(--ink)}.tree .head{font-size:12.5px;font-weight:620}
.tree path{fill:none;stroke:var(--line)}.tree .numa{fill:none;stroke:var(--line)}
.tree .root,.tree .bridge{fill:var(--card);stroke:var(--soft)}.tree .gpu{fill:var(--soft)}.tree .hca{fill:var(--wait)}
.tree rect.bad{fill:var(--bad);stroke:var(--bad)}
.tree rect.unknown{fill:var(--warn-bg);stroke:var(--warn);stroke-dasharray:2 2}
.tree text.bad{fill:var(--bad);font-weight:600}.tree text.unknown{fill:var(--warn)}

footer{padding:4px 24px 40px;color:var(--soft);font-size:13px}
.about,footer dl{display:flex;flex-wrap:wrap;gap:4px 24px;margin:0 0 8px}
footer dd{color:var(--ink);font-variant-numeric:tabular-nums}

@media (max-width:640px){
header,main,footer{padding-left:14px;padding-right:14px}.card{padding:14px 14px}header{padding-top:22px}
article dl,.steps dl{grid-template-columns:1fr}.summary{font-size:16px}
/* one row, to be pushed along: the first thing to do is on the first screen */
nav ol{display:flex;overflow-x:auto;margin:14px 0;padding:3px}nav li{flex:none}nav a{padding:6px 8px;font-size:14px}
.steps{padding-left:20px}}
@media print{@page{margin:12mm}
.waivers details::details-content,details.more::details-content{content-visibility:visible;block-size:auto}
.filter,.skip,.sheet,.sheets,.facts{display:none}
:root{color-scheme:light}body{background:#fff;font-size:10pt}header,main,footer{padding:0}h1{font-size:24pt}
.summary{font-size:12pt}
nav ol{margin:12px 0}nav a{padding:3px 8px;font-size:9pt}.scroll{overflow:visible}pre{max-height:none}
.card{border:0;border-top:1px solid #999;border-radius:0;padding:8px 0;margin:0}
h2,h3,summary{break-after:avoid}figure,tr,nav,footer,article>*{break-inside:avoid}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
