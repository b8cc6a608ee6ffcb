import { expect } from 'vitest';
import { base64 } from './gateway.ts';
import { APP, ROOT } from './secured-etcd.ts';

interface Reply {
  readonly kvs?: { key: string }[];
  readonly header: { readonly revision: string };
  readonly token: string;
}

/** An etcd that requires authentication for its v3 API. */
export interface GuardedV3 {
  /** Sends a request to the gateway as root. */
  asRoot(path: string, message: object): Promise<Reply>;
  changePassword(password: string): Promise<void>;
  /** The keys that begin with a prefix. */
  keysBelow(prefix: string): Promise<string[]>;
}

/** Enables the authentication of etcd's v3 API. `APP` may read and write the keys of locks, and no others. */
export async function guardV3(url: string): Promise<GuardedV3> {
  const ask = async (path: string, message: object, token?: string): Promise<Reply> => {
    const headers = token === undefined ? {} : { authorization: token };
    const answer = await fetch(`${url}/v3${path}`, { method: 'POST', headers, body: JSON.stringify(message) });
    const body = await answer.text();
    expect(answer.ok, `${path}: ${body}`).toBe(true);
    return JSON.parse(body) as Reply;
  };
  const locks = { permType: 'READWRITE', key: base64('/_locks/'), range_end: base64('/_locks0') };
  await ask('/auth/user/add', { name: ROOT.username, password: ROOT.password });
  await ask('/auth/role/add', { name: 'root' });
  await ask('/auth/user/grant', { user: ROOT.username, role: 'root' });
  await ask('/auth/user/add', { name: APP.username, password: APP.password });
  await ask('/auth/role/add', { name: 'locks' });
  await ask('/auth/role/grant', { name: 'locks', perm: locks });
  await ask('/auth/user/grant', { user: APP.username, role: 'locks' });
  await ask('/auth/enable', {});
  // Asked for anew each time: tokens may live for a moment only.
  const asRoot = async (path: string, message: object): Promise<Reply> => {
    const { token } = await ask('/auth/authenticate', { name: ROOT.username, password: ROOT.password });
    return ask(path, message, token);
  };
  return {
    asRoot,
    changePassword: async (password) => {
      await asRoot('/auth/user/changepw', { name: APP.username, password });
    },
    keysBelow: async (prefix) => {
      const end = prefix.replace(/.$/, (last) => String.fromCharCode(last.charCodeAt(0) + 1));
      const { kvs = [] } = await asRoot('/kv/range', {
        key: base64(prefix),
        range_end: base64(end),
        sort_target: 'CREATE',
        sort_order: 'ASCEND',
      });
      return kvs.map(({ key }) => Buffer.from(key, 'base64').toString());
    },
  };
}
