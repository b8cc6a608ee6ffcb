import http from 'node:http';

export interface StatusRequest {
  readonly method?: string;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Sends a request on a connection of its own. Resolves to the status of the answer; undefined if there is no whole answer. */
export function statusOf(url: string, { method = 'GET', body, signal }: StatusRequest): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = http.request(url, { method, agent: false, signal }, (answer) => {
      answer.resume().on('error', () => resolve(undefined));
      answer.on('end', () => resolve(answer.statusCode));
    });
    request.on('error', () => resolve(undefined));
    request.end(body);
  });
}
