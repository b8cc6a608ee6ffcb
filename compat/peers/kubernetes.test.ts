// The manifests in examples/kubernetes fit the schemas that Kubernetes publishes, which kubernetes-validate contains.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { cache } from '../../scripts/peers/cache.mjs';
import { temporaryDirectory } from '../../test/support/temporary.ts';

const MANIFESTS = fileURLToPath(new URL('../../examples/kubernetes/', import.meta.url));
const execute = promisify(execFile);

/** @returns the lines of the report, one for each object. @throws {Error} if one does not fit */
const validate = async (file: string, version: string): Promise<string[]> => {
  const program = join(cache, 'kubernetes-validate/bin/kubernetes-validate');
  const { stdout, stderr } = await execute(program, ['--strict', '--kubernetes-version', version, file]);
  return (stdout + stderr).trim().split('\n');
};

/** The oldest version and the newest one that kubernetes-validate knows. */
const VERSIONS = ['1.25.0', '1.37.0'];
const cases = readdirSync(MANIFESTS).flatMap((file) => VERSIONS.map((version) => ({ file, version })));

test.each(cases)('$file fits the schemas of Kubernetes $version', async ({ file, version }) => {
  const objects = readFileSync(join(MANIFESTS, file), 'utf8').match(/^kind: /gm) ?? [];
  expect(objects.length).toBeGreaterThan(0);
  const report = await validate(join(MANIFESTS, file), version);
  expect(report.filter((line) => line.includes(' passed '))).toHaveLength(objects.length);
});

test.each([
  ['a field that does not exist', 'readOnlyRootFilesystem', 'readOnlyRootFileSystem'],
  ['text instead of a number', 'replicas: 2', 'replicas: two'],
])('%s is noticed', async (_, right, wrong) => {
  const manifest = readFileSync(join(MANIFESTS, 'bridge.yaml'), 'utf8');
  expect(manifest).toContain(right);
  const file = join(temporaryDirectory(), 'bridge.yaml');
  writeFileSync(file, manifest.replace(right, wrong));
  await expect(validate(file, '1.37.0')).rejects.toThrow();
});
