import { chromium } from 'playwright-core';
const [,, url, out, width='1280', scheme='light', height='900', ...steps] = process.argv;
const b = await chromium.launch({ executablePath:'/usr/bin/chromium', args:['--headless','--no-sandbox','--disable-gpu','--disable-quic','--no-first-run','--disable-background-networking','--disable-component-update','--disable-sync']});
const p = await b.newPage({ viewport:{width:+width,height:+height}, colorScheme: scheme });
p.on('console', m => console.log('console', m.type(), m.text()));
p.on('pageerror', e => console.log('pageerror', e.message));
p.on('requestfailed', r => console.log('failed', r.url(), r.failure()?.errorText));
const token = (await import('node:fs')).readFileSync('/var/tmp/serve/token','utf8').trim();
await p.goto(new URL('/', url).href + '#token=' + token); await p.waitForTimeout(800);
const t0 = Date.now(); await p.goto(url); await p.waitForLoadState('networkidle'); console.log('idle after', Date.now()-t0); await p.waitForTimeout(1500);
for (const s of steps) { await eval(`(async()=>{${s}})()`); await p.waitForTimeout(900); }
await p.screenshot({ path: out, fullPage: process.env.FULL==='1' });
console.log(p.url()); await b.close();
