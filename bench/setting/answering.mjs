import { createInterface } from 'node:readline';

/** The child's side of a `JsonProcess`: runs one operation after the other until stdin ends. */
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
