import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { channelOf, type RequestMessages, type RequestTrace } from '../manager/trace.ts';

/** What to do with requests. A state is what an observer remembers of one request until its outcome. */
export interface Observer<State extends object> {
  /** Returns the state of a request that begins. */
  begin(request: RequestTrace): State;
  /** What to do at the events of a request after its start. */
  readonly on: {
    readonly [Event in Exclude<keyof RequestMessages, 'start'>]?: (
      request: RequestMessages[Event],
      state: State,
    ) => void;
  };
  /** Called at the end of the observation for each request that has no outcome yet. */
  abandon(state: State): void;
}

/**
 * Observes each request that begins from now on. Requests that have begun earlier are left out: a gauge would subtract what it has not
 * added.
 * @returns a function that ends this
 */
export function observe<State extends object>({ begin, on, abandon }: Observer<State>): () => void {
  const states = new Map<RequestTrace, State>();
  type Listener = (request: RequestTrace) => void;
  const subscribed: (() => void)[] = [];
  const listen = (event: string, listener: Listener): void => {
    const heard = (message: unknown): void => listener(message as RequestTrace);
    subscribe(channelOf(event), heard);
    subscribed.push(() => unsubscribe(channelOf(event), heard));
  };
  listen('start', (request) => states.set(request, begin(request)));
  for (const [event, observed] of Object.entries(on))
    listen(event, (request) => {
      const state = states.get(request);
      // Each channel has messages of its own type.
      if (state) (observed as (request: RequestTrace, state: State) => void)(request, state);
    });
  listen('outcome', (request) => states.delete(request));
  return () => {
    for (const unlisten of subscribed) unlisten();
    for (const state of states.values()) abandon(state);
  };
}
