import type { StoreCall } from '../../../src/recipe/store.ts';
import type { Interceptor, RequestKind, StoreClient } from './store-client.ts';

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * Makes requests of a client pass through interceptors, and returns the function that adds one.
 * @param kinds the methods that make requests: their first argument is a key or directory, and their last has the signal
 */
export function interceptable<Client extends object>(
  client: Client,
  kinds: { readonly [Name in keyof Client]?: RequestKind },
): StoreClient['intercept'] {
  let intercept: Interceptor = (request) => request.send();
  for (const [method, kind] of Object.entries(kinds) as [string, RequestKind][]) {
    const send = (Reflect.get(client, method) as Method).bind(client);
    const intercepted: Method = (...args) => {
      const { signal } = (args.at(-1) ?? {}) as StoreCall;
      return intercept({ kind, key: String(args[0]), signal, send: () => send(...args) });
    };
    Reflect.set(client, method, intercepted);
  }
  return (interceptor) => {
    const previous = intercept;
    intercept = (request) => interceptor({ ...request, send: () => previous(request) });
  };
}
