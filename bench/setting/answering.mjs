import { createInterface } from 'node:readline';

/** The other end of a `JsonProcess`: does one operation after the other until its input ends. */
export async function answerLines(operations) {
  for await (const line of createInterface(process.stdin)) {
    const { id, op, ...args } = JSON.parse(line);
    const answer = await operations[op](args).then(
      (result) => ({ result }),
      ({ stack }) => ({ error: stack }),
    );
    process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
  }
}
