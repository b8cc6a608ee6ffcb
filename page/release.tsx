/** The release of an entry by force, with the questions of the command `release`. */
import { signal } from '@preact/signals';
import type { ShownEntry, ShownPlan, ShownResult } from '../src/cli/ui/shapes.ts';
import { Foreign } from './parts.tsx';
import { openName } from './state.ts';
import { nameOf } from './words.ts';

interface Asked {
  readonly entry: ShownEntry;
  readonly api: string;
  /** What the removal means; undefined until the server has read the queue. */
  readonly plan: ShownPlan | undefined;
  /** Whether the entry is removed even if it holds the lock: the second confirmation. */
  readonly isForced: boolean;
  readonly isSent: boolean;
}

const asked = signal<Asked | undefined>(undefined);
/** What has come of the last release. */
const outcome = signal('');

const LOST = 'The server of this page has not answered.';

/** Returns the JSON of an answer, or the text that says what is wrong. */
async function answerTo<T>(request: Promise<Response>): Promise<T | string> {
  try {
    const answer = await request;
    const isJson = answer.headers.get('content-type') === 'application/json';
    return isJson ? ((await answer.json()) as T) : await answer.text();
  } catch {
    return LOST;
  }
}

const wanted = ({ key, uuid }: ShownEntry, api: string) => ({ name: openName.value ?? '', api, key, uuid });

/** Closes the dialog. The focus returns to the button that has opened it. */
function dismiss(): void {
  document.querySelector('dialog')?.close();
  asked.value = undefined;
}

/** Closes the dialog, and says what has happened. */
function conclude(text: string): void {
  dismiss();
  outcome.value = text;
}

async function ask(entry: ShownEntry, api: string): Promise<void> {
  const question = { entry, api, plan: undefined, isForced: false, isSent: false };
  outcome.value = '';
  asked.value = question;
  const query = new URLSearchParams(wanted(entry, api));
  const plan = await answerTo<ShownPlan | ShownResult>(fetch(`api/release?${query}`));
  // The question may have been answered with "Cancel".
  if (asked.value !== question) return;
  if (typeof plan === 'string') conclude(plan);
  else if ('text' in plan) conclude(plan.text);
  else asked.value = { ...question, plan };
}

async function remove(question: Asked): Promise<void> {
  const sent = { ...question, isSent: true };
  asked.value = sent;
  const { entry, api, isForced } = question;
  const body = JSON.stringify({ ...wanted(entry, api), force: isForced });
  const headers = { 'Content-Type': 'application/json' };
  const result = await answerTo<ShownResult>(fetch('api/release', { method: 'POST', headers, body }));
  conclude(typeof result === 'string' ? result : result.text);
  // The button of the entry disappears with it.
  document.querySelector('h1')?.focus();
}

/** To be called when another lock is opened. */
export function forgetRelease(): void {
  asked.value = undefined;
  outcome.value = '';
}

/** Whether a question is open: Escape then closes it. */
export const isAsking = (): boolean => asked.value !== undefined;

export const ReleaseButton = ({ entry, api }: { readonly entry: ShownEntry; readonly api: string }) => (
  <button type="button" class="small" aria-label={`Release ${nameOf(entry)}`} onClick={() => void ask(entry, api)}>
    Release
  </button>
);

function Plan({
  plan: { entry, isHolder, consequence },
  question,
}: {
  readonly plan: ShownPlan;
  readonly question: Asked;
}) {
  return (
    <>
      <p>
        <Foreign text={entry} />
      </p>
      <p class={isHolder ? 'danger' : ''}>
        <Foreign text={consequence} />
      </p>
      {isHolder && (
        <label>
          <input
            type="checkbox"
            checked={question.isForced}
            onChange={(event) => {
              asked.value = { ...question, isForced: event.currentTarget.checked };
            }}
          />{' '}
          Remove it although it holds the lock
        </label>
      )}
    </>
  );
}

function Question({ question }: { readonly question: Asked }) {
  const { plan, isForced, isSent } = question;
  const isReady = plan !== undefined && !isSent && (isForced || !plan.isHolder);
  return (
    <dialog
      aria-labelledby="question"
      ref={(dialog) => {
        if (dialog && !dialog.open) dialog.showModal();
      }}
      onCancel={(event) => {
        event.preventDefault();
        dismiss();
      }}
      onClose={dismiss}
    >
      <h2 id="question">Release this entry?</h2>
      {plan ? <Plan plan={plan} question={question} /> : <p role="status">reading the queue</p>}
      <p class="buttons">
        <button type="button" disabled={!isReady} onClick={() => void remove(question)}>
          Release
        </button>
        <button type="button" onClick={dismiss}>
          Cancel
        </button>
      </p>
    </dialog>
  );
}

/** The question, while it is open, and what has come of the last one. */
export function Release() {
  const question = asked.value;
  return (
    <>
      <p role="status">
        <Foreign text={outcome.value} />
      </p>
      {question && <Question question={question} />}
    </>
  );
}
