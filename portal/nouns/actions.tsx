/** Actions of nouns: why they are off, what is asked before, and one result for each item. */
import { type ReactNode, useState } from 'react'
import { cache, keyOf, readAgain } from '../api/cache.ts'
import type { OperationId } from '../api/operations.ts'
import { portal, ruleOf } from '../api/portal.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { uuid } from '../system.ts'
import { actionText, nounTexts, t } from '../texts/index.ts'
import { Confirm } from '../ui/dialog.tsx'
import { notify } from '../ui/toast.tsx'
import type { MenuEntry } from '../ui/menu.tsx'
import { Fields } from './fields.tsx'
import { bodyOf, changesOf, faultsOf, useBodies, useForm } from './form.ts'
import { type ActionOf, type Noun, operationOf, type Thing } from './noun.ts'
import { Once } from './once.tsx'
import { pathTo, send } from './reads.ts'
import { type Secrets, secretsIn } from './secrets.ts'

const AT_ONCE = 4

/** Why the action is not possible on the item now; undefined when it is. */
export function whyOf(action: ActionOf<Thing>, item: Thing): string | undefined {
  const running = operationOf(item)
  const rule = ruleOf(action.operation)
  if (
    running !== undefined &&
    action.isAnytime !== true &&
    (rule.starts ?? []).length > 0 &&
    !isDeletionOfNew(action, running.kind)
  )
    return t().page.busy(running.kind)
  if (rule.isDestructive === true && item['is_protected'] === true && action.operation.startsWith('delete_'))
    return t().page.isProtected
  return action.why?.(item)
}

/** Something that is being made can be deleted: its creation is cancelled. */
const isDeletionOfNew = ({ operation }: ActionOf<Thing>, kind: string): boolean =>
  operation === 'delete_server' && kind === 'server.create'

interface Started {
  readonly action: ActionOf<Thing>
  readonly items: readonly Thing[]
}

export interface Actions {
  readonly start: (action: ActionOf<Thing>, items: readonly Thing[]) => void
  /** Entries of a menu, for one item. */
  readonly entriesFor: (item: Thing, actions?: readonly ActionOf<Thing>[]) => readonly MenuEntry[]
  /** Those that the signed-in person may ever do. */
  readonly allowed: readonly ActionOf<Thing>[]
  /** Has to be somewhere on the page. */
  readonly dialog: ReactNode
}

export function useActions(noun: Noun, onDone: (done: ReadonlySet<string>) => void = () => undefined): Actions {
  const may = useMay()
  const [started, setStarted] = useState<Started>()
  const [secrets, setSecrets] = useState<Secrets>()
  const allowed = noun.actions.filter(({ operation }) => may(operation))
  const finish = ({ done, secrets: shown }: Outcome): void => {
    setSecrets(shown)
    onDone(done)
  }
  const start = (action: ActionOf<Thing>, items: readonly Thing[]): void => {
    if (action.confirm !== undefined || action.form !== undefined) setStarted({ action, items })
    else void runAll(noun, action, items, {}).then(finish)
  }
  const entriesFor = (item: Thing, actions: readonly ActionOf<Thing>[] = allowed): readonly MenuEntry[] =>
    actions.map((action, at) => ({
      id: action.operation,
      name: actionText(action.operation),
      why: whyOf(action, item),
      isBad: ruleOf(action.operation).isDestructive === true,
      isApart: at > 0 && ruleOf(action.operation).isDestructive === true,
      run: () => start(action, [item]),
    }))
  const dialog =
    secrets !== undefined ? (
      <Once secrets={secrets} onClose={() => setSecrets(undefined)} />
    ) : started === undefined ? null : (
      <ActionDialog
        noun={noun}
        {...started}
        onClose={() => setStarted(undefined)}
        onDone={(outcome) => {
          setStarted(undefined)
          finish(outcome)
        }}
      />
    )
  return { start, entriesFor, allowed, dialog }
}

interface Outcome {
  readonly done: ReadonlySet<string>
  readonly refusals: readonly Refusal[]
  /** What the last answer shows once. */
  readonly secrets: Secrets | undefined
}

/** Four at a time; each has its own result. */
async function runAll(
  noun: Noun,
  action: ActionOf<Thing>,
  items: readonly Thing[],
  body: Readonly<Record<string, unknown>>,
  keys = new Map<string, string>(),
): Promise<Outcome> {
  const done = new Set<string>()
  const refusals: Refusal[] = []
  let secrets: Secrets | undefined
  const waiting = [...items]
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
      try {
        secrets = secretsIn(await runOne(action.operation, item.id, body, keys)) ?? secrets
        done.add(item.id)
      } catch (error) {
        refusals.push(asRefusal(action.operation, error))
      }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  tellResult(noun, action, items, refusals)
  await readAgain(noun.list, noun.read ?? noun.list, portal().operationList)
  return { done, refusals, secrets }
}

const runOne = (
  id: OperationId,
  item: string,
  body: Readonly<Record<string, unknown>>,
  keys: Map<string, string>,
): Promise<Readonly<Record<string, unknown>>> => {
  const { method } = ruleOf(id)
  const what = JSON.stringify([item, body])
  const key = keys.get(what) ?? uuid()
  keys.set(what, key)
  const hasBody = method !== 'DELETE' && method !== 'GET'
  return send(id, {
    path: pathTo(id, item),
    ...(hasBody && Object.keys(body).length > 0 ? { body } : {}),
    ...(method === 'DELETE' && Object.keys(body).length > 0 ? { query: queryOf(body) } : {}),
    ...(method === 'POST' ? { idempotencyKey: key } : {}),
  })
}

const queryOf = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]))

function tellResult(
  noun: Noun,
  { operation }: ActionOf<Thing>,
  items: readonly Thing[],
  refusals: readonly Refusal[],
): void {
  const [item] = items
  const label = actionText(operation)
  const what = items.length === 1 && item !== undefined ? `${label} ${noun.titleOf(item)}` : label
  if (refusals.length === 0) notify(t().operations.started(what))
  else if (items.length === 1) notify(`${t().operations.failed(what)} – ${refusals[0]?.message ?? ''}`)
  else notify(`${label}: ${t().operations.result(items.length - refusals.length, items.length)}`)
}

interface ActionDialogProps extends Started {
  readonly noun: Noun
  readonly onClose: () => void
  readonly onDone: (outcome: Outcome) => void
}

function ActionDialog({ noun, action, items, onClose, onDone }: ActionDialogProps): ReactNode {
  const [only] = items
  const [before] = useState(items.length === 1 && only !== undefined ? action.initial?.(only) : undefined)
  const form = useForm(before ?? {})
  const bodies = useBodies()
  // Of what was sent from here: sent again after a lost answer, it is carried out once.
  const [keys] = useState(() => new Map<string, string>())
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const schema = bodies?.[action.operation] ?? { flags: {} }
  const fields = action.form ?? []
  const send = async (): Promise<void> => {
    const faults = faultsOf(fields, schema, form.values, t().problem.field)
    form.setErrors(faults)
    if (Object.keys(faults).length > 0) return
    setBusy(true)
    const after = form.values
    const isChange = before !== undefined && ruleOf(action.operation).method === 'PATCH'
    const body = isChange ? changesOf(fields, schema, { before, after }) : bodyOf(fields, after)
    const outcome = await runAll(noun, action, items, body, keys)
    const { refusals } = outcome
    setBusy(false)
    setRefusal(refusals[0])
    if (refusals[0] !== undefined) form.setErrors(refusals[0].fields)
    if (refusals.length === 0) onDone(outcome)
  }
  const label = actionText(action.operation)
  return (
    <Confirm
      title={titleOf(noun, label, items)}
      {...consequencesOf(noun, action, items)}
      button={label}
      isDanger={ruleOf(action.operation).isDestructive === true}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void send()}
      onClose={onClose}
    >
      {fields.length === 0 ? null : <Fields fields={fields} body={schema} form={form} />}
    </Confirm>
  )
}

function titleOf(noun: Noun, label: string, items: readonly Thing[]): string {
  const [item] = items
  return items.length === 1 && item !== undefined
    ? t().choices.confirm(label, noun.titleOf(item))
    : t().choices.confirmMany(label, items.length, nounTexts(noun.name).many)
}

/** What goes and what stays, of all items together; and what has to be typed. */
function consequencesOf(
  noun: Noun,
  { confirm }: ActionOf<Thing>,
  items: readonly Thing[],
): { readonly goes: readonly string[]; readonly stays: readonly string[]; readonly type: string | undefined } {
  const [item] = items
  const many = items.length > 1
  const named = (texts: (each: Thing) => readonly string[]): readonly string[] =>
    items.flatMap((each) => texts(each).map((text) => (many ? `${noun.titleOf(each)}: ${text}` : text)))
  return {
    goes: named((each) => confirm?.goes?.(each) ?? []),
    stays: named((each) => confirm?.stays?.(each) ?? []),
    type:
      confirm?.type === undefined || item === undefined
        ? undefined
        : many
          ? t().choices.typeMany(items.length, nounTexts(noun.name).many)
          : confirm.type(item),
  }
}

/** Writes an item that was changed directly into the cache. */
export function keep(noun: Noun, item: Thing): void {
  const { read, member } = noun
  if (read !== undefined)
    cache.setQueryData(keyOf(read, { path: pathTo(read, item.id) }), member === undefined ? item : { [member]: item })
  void readAgain(noun.list)
}
