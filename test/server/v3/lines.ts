import type { RawConnection } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';

/** An answer of a watch. */
export interface Line {
  readonly watch_id?: string;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly compact_revision?: string;
  readonly cancel_reason?: string;
  readonly events?: readonly { readonly kv: { readonly key: string; readonly mod_revision: string } }[];
}

/** Returns the lines of the latest stream of a client. */
export const linesOf = ({ answers }: RawConnection): Line[] =>
  (answers.at(-1)?.body ?? '')
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { readonly result: Line }).result);

/** Waits until a client has received so many lines. Returns them. */
export async function linesUpTo(client: RawConnection, count: number): Promise<Line[]> {
  await until(
    () => client.text.split('{"result":').length - 1,
    (lines) => lines >= count,
  );
  return until(
    () => linesOf(client),
    (lines) => lines.length >= count,
  );
}
