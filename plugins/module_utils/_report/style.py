# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Style sheet of the HTML report. Dark where the reader's system is."""

from __future__ import annotations

STYLE = """
:root{--ground:#f6f7f5;--card:#fff;--ink:#1d2521;--soft:#5d6963;--line:#e2e6e2;--good:#1f7a4d;--bad:#b3261e;--warn:#9a6700;--wait:#4a5a8a;--mute:#7a847e;
--good-bg:#e4f3ea;--bad-bg:#fbe9e7;
--warn-bg:#fbf1d9;--wait-bg:#e8ebf6;--mute-bg:#eef0ee}
@media (prefers-color-scheme:dark){:root{--ground:#141816;--card:#1c221f;--ink:#e6ebe8;--soft:#9aa6a0;--line:#2c3430;
--good:#63c795;--bad:#ff8a80;--warn:#e0b252;
--wait:#9fb0ea;--mute:#9aa6a0;--good-bg:#17301f;--bad-bg:#3a1d1a;--warn-bg:#33290f;--wait-bg:#20263c;--mute-bg:#262d29}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 24px}
header{padding-top:40px;padding-bottom:8px}
.brand{margin:0;color:var(--soft);letter-spacing:.04em}
h1{margin:.1em 0 0;font-size:44px;line-height:1.1;font-weight:650;letter-spacing:-.01em}
header.good h1{color:var(--good)}header.bad h1{color:var(--bad)}header.neutral h1{color:var(--wait)}
.summary{margin:.4em 0 0;font-size:18px}
.tiles{display:flex;flex-wrap:wrap;gap:8px;list-style:none;margin:20px 0 0;padding:0}
.tile{padding:6px 14px;border-radius:999px;background:var(--mute-bg);color:var(--soft)}
.tile b{font-variant-numeric:tabular-nums;color:var(--ink)}
nav ol{display:flex;flex-wrap:wrap;gap:6px;list-style:none;margin:24px 0;padding:0}
nav li{flex:1 1 96px;min-width:96px}
nav a{display:block;height:100%;padding:8px 10px;border-radius:8px;background:var(--card);border:1px solid var(--line);border-top:4px solid var(--mute);
color:inherit;text-decoration:none;line-height:1.25}
nav small{display:block;color:var(--soft)}
nav li.open a{border-top-color:var(--good)}nav li.closed a,nav li.unreadable a{border-top-color:var(--bad)}nav li.pending a{border-top-color:var(--wait)}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 22px;margin:0 0 18px}
h2{margin:0 0 10px;font-size:20px;font-weight:620}
.stage h2{text-transform:capitalize}
.state{font-size:14px;font-weight:400;color:var(--soft);text-transform:none}
.stage.closed .state,.stage.unreadable .state{color:var(--bad)}.stage.open .state{color:var(--good)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:7px 10px;border-top:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:anywhere}
thead th{border-top:0;color:var(--soft);font-weight:500;font-size:13px;white-space:nowrap}
td p{margin:0 0 4px}td ul{margin:0;padding-left:18px}td small{display:block;color:var(--soft)}td code{white-space:nowrap}
code{font:13px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.badge{display:inline-block;min-width:64px;padding:1px 8px;border-radius:999px;text-align:center;font-size:13px;background:var(--mute-bg);color:var(--mute)}
.badge.pass{background:var(--good-bg);color:var(--good)}.badge.fail{background:var(--bad-bg);color:var(--bad)}
.badge.unknown,.badge.warn{background:var(--warn-bg);color:var(--warn)}.badge.waived{background:var(--wait-bg);color:var(--wait)}
details{margin-top:10px}summary{cursor:pointer;color:var(--soft)}
pre{max-height:480px;overflow:auto;padding:12px;border-radius:8px;background:var(--mute-bg);font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
figure{margin:14px 0}figcaption{color:var(--soft);font-size:13px}
figure th[scope=row]{font-weight:400}.wide{width:45%}.number{text-align:right;font-variant-numeric:tabular-nums}
.bar{position:relative;height:14px;margin-top:4px;border-radius:4px;background:var(--mute-bg)}
.fill{display:block;height:100%;border-radius:4px}.fill.good{background:var(--good)}.fill.bad{background:var(--bad)}
.floor{position:absolute;top:-3px;bottom:-3px;width:2px;background:var(--ink)}
footer{padding:8px 24px 40px;color:var(--soft);font-size:13px}
@media print{body{background:#fff}.card{break-inside:avoid-page}}
"""
