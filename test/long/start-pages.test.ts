// Each page of docs/start/ is followed from its start to its end, on a real etcd of its own, and prints what it shows.
import { readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startEtcd } from '../support/etcd.ts';
import { freePorts } from '../support/ports.ts';
import { python } from '../support/python.ts';
import { pageOf } from '../support/readme.ts';
import { comparable, follow } from '../support/walkthrough.ts';

const FOLDER = 'docs/start/';

test.each(readdirSync(new URL(`../../${FOLDER}`, import.meta.url)))(
  'who follows %s sees what it shows',
  async (name) => {
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    const [both = '', v3 = ''] = (await freePorts(2)).map(String);
    const steps = await follow(pageOf(`${FOLDER}${name}`), {
      ports: { 2379: new URL(etcd.url).port, 4001: both, 4002: v3 },
      programs: { python3: `exec '${python()}' "$@"` },
      // Go's part is run by `npm run peers`.
      isRun: ({ code }) => !/\bgo run\b/.test(code),
    });
    expect(steps.length).toBeGreaterThan(2);
    for (const { code, shown, printed } of steps) expect(comparable(printed), code).toBe(comparable(shown));
  },
);
