import { inject } from 'vitest';

/** The python3 that can `import etcd`. */
export function python(): string {
  const found = inject('python');
  if (found === null) throw new Error('no python3 can `import etcd`: apt-get install python3-etcd');
  return found;
}
