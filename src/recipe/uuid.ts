import { v4 } from 'uuid';

/** Returns a fresh identity in python-etcd's form: 32 hex digits. */
export const freshUuid = (): string => v4().replaceAll('-', '');
