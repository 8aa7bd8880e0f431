/** Actions of nouns: why they are off, what is asked before, and one result for each item. */
import { type ComponentType, type ReactNode, useState } from 'react'
import { cache, keyOf, readAgain } from '../api/cache.ts'
import type { OperationId } from '../api/operations.ts'
import { portal, ruleOf } from '../api/portal.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { uuid } from '../system.ts'
import { actionText, nounTexts, t } from '../texts/index.ts'
import { manyWithin } from '../texts/noun-texts.ts'
import { kindText } from '../texts/service.ts'
import { Confirm } from '../ui/dialog.tsx'
import { notify } from '../ui/toast.tsx'
import type { MenuEntry } from '../ui/menu.tsx'
import { Fields } from './fields.tsx'
import { bodyOf, changesOf, faultsOf, useBodies, useForm } from './form.ts'
import { type ActionOf, type Noun, operationOf, type Thing } from './noun.ts'
import type { OnceProps } from './once.tsx'
import { pathTo, type Reply, sendOnce } from './reads.ts'
import { type Shown, shownIn } from './secrets.ts'

const AT_ONCE = 4

/** Few actions show a secret, and every list has actions: it is loaded before the first request that is answered with
 *  one. After it would be too late, because a new release has other files. */
let Once: ComponentType<OnceProps> | undefined

export const nameOfAction = ({ name, operation }: ActionOf<Thing>): string => name?.() ?? actionText(operation)

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
    return t().page.busy(kindText(running.kind))
  if (rule.isDestructive === true && item['is_protected'] === true && action.operation.startsWith('delete_'))
    return t().page.isProtected
  return action.why?.(item)
}

/** Something that is being made can be deleted: its creation is cancelled. */
const isDeletionOfNew = ({ operation }: ActionOf<Thing>, kind: string): boolean =>
  operation === 'delete_server' && kind === 'server.create'

/** It has a dialog. */
const isAsked = ({ confirm, form }: ActionOf<Thing>): boolean => confirm !== undefined || form !== undefined

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
  const [shown, setShown] = useState<readonly Shown[]>([])
  const allowed = noun.actions.filter(({ operation }) => may(operation))
  const finish = ({ done, shown: next }: Pick<Outcome, 'done' | 'shown'>): void => {
    setShown(next)
    onDone(done)
  }
  const start = (action: ActionOf<Thing>, items: readonly Thing[]): void => {
    if (isAsked(action)) setStarted({ action, items })
    else void runAll(noun, action, items, {}).then(finish)
  }
  const entriesFor = (item: Thing, actions: readonly ActionOf<Thing>[] = allowed): readonly MenuEntry[] =>
    actions.map((action, at) => ({
      id: nameOfAction(action),
      name: nameOfAction(action),
      why: whyOf(action, item),
      isBad: ruleOf(action.operation).isDestructive === true,
      isApart: at > 0 && ruleOf(action.operation).isDestructive === true,
      run: () => start(action, [item]),
    }))
  const dialog =
    shown.length > 0 && Once !== undefined ? (
      <Once shown={shown} rotate={noun.rotate} isReadable={noun.secret !== undefined} onClose={() => setShown([])} />
    ) : started === undefined ? null : (
      <ActionDialog
        noun={noun}
        {...started}
        onEnd={(outcome) => {
          setStarted(undefined)
          finish(outcome)
        }}
      />
    )
  return { start, entriesFor, allowed, dialog }
}

export interface Outcome {
  readonly done: ReadonlySet<string>
  readonly refusals: readonly Refusal[]
  /** What the answers show once, in the order of the items. */
  readonly shown: readonly Shown[]
}

/** Four at a time; each has its own result. */
export async function runAll(
  noun: Noun,
  action: ActionOf<Thing>,
  items: readonly Thing[],
  body: Readonly<Record<string, unknown>>,
  keys = new Map<string, string>(),
): Promise<Outcome> {
  const done = new Set<string>()
  const refusals: Refusal[] = []
  const found = new Map<string, Shown>()
  const waiting = [...items]
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
      try {
        if (ruleOf(action.operation).hasSecrets === true) Once ??= (await import('./once.tsx')).Once
        const { answer, isLost } = await runOne(action.operation, item.id, body, keys)
        const shown = shownIn(answer, { id: item.id, name: noun.titleOf(item), hasSecrets: isLost })
        if (shown !== undefined) found.set(item.id, shown)
        done.add(item.id)
      } catch (error) {
        refusals.push(asRefusal(action.operation, error))
      }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  // a dialog stays open with the refusal
  const isShown = items.length === 1 && isAsked(action)
  if (refusals.length === 0 || !isShown) tellResult(noun, action, items, refusals)
  await readAgain(noun.list, noun.read ?? noun.list, portal().operationList, ...(noun.reads ?? []))
  return { done, refusals, shown: items.flatMap(({ id }) => found.get(id) ?? []) }
}

const runOne = (
  id: OperationId,
  item: string,
  body: Readonly<Record<string, unknown>>,
  keys: Map<string, string>,
): Promise<Reply> => {
  const { method } = ruleOf(id)
  const what = JSON.stringify([item, body])
  const key = keys.get(what) ?? uuid()
  keys.set(what, key)
  const hasBody = method !== 'DELETE' && method !== 'GET'
  return sendOnce(id, {
    path: pathTo(id, item),
    ...(hasBody && Object.keys(body).length > 0 ? { body } : {}),
    ...(method === 'DELETE' && Object.keys(body).length > 0 ? { query: queryOf(body) } : {}),
    ...(method === 'POST' ? { idempotencyKey: key } : {}),
  })
}

const queryOf = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]))

function tellResult(noun: Noun, action: ActionOf<Thing>, items: readonly Thing[], refusals: readonly Refusal[]): void {
  const [item] = items
  const label = nameOfAction(action)
  const what = items.length === 1 && item !== undefined ? `${label} ${noun.titleOf(item)}` : label
  if (refusals.length === 0) notify(t().operations.started(what))
  else if (items.length === 1) notify(`${t().operations.failed(what)} – ${refusals[0]?.message ?? ''}`)
  else notify(`${label}: ${t().operations.result(items.length - refusals.length, items.length)}`)
}

interface ActionDialogProps extends Started {
  readonly noun: Noun
  /** With what was done, also when it is closed before all of it is. */
  readonly onEnd: (outcome: Pick<Outcome, 'done' | 'shown'>) => void
}

const NOTHING: Pick<Outcome, 'done' | 'shown'> = { done: new Set(), shown: [] }

function ActionDialog({ noun, action, items: all, onEnd }: ActionDialogProps): ReactNode {
  // of several items, those that were refused stay
  const [ended, setEnded] = useState(NOTHING)
  const items = all.filter(({ id }) => !ended.done.has(id))
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
    const [refused] = outcome.refusals
    const next = joined(ended, outcome)
    setBusy(false)
    setRefusal(refused)
    if (refused === undefined) return onEnd(next)
    setEnded(next)
    form.setErrors(refused.fields)
  }
  const label = nameOfAction(action)
  return (
    <Confirm
      title={titleOf(noun, label, items)}
      {...consequencesOf(noun, action, items)}
      button={label}
      isDanger={ruleOf(action.operation).isDestructive === true}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void send()}
      onClose={() => onEnd(ended)}
    >
      {fields.length === 0 ? null : <Fields fields={fields} body={schema} form={form} />}
    </Confirm>
  )
}

/** What was done before, and what was done now. */
export const joined = (
  before: Pick<Outcome, 'done' | 'shown'>,
  now: Pick<Outcome, 'done' | 'shown'>,
): Pick<Outcome, 'done' | 'shown'> => ({
  done: new Set([...before.done, ...now.done]),
  shown: [...before.shown, ...now.shown],
})

function titleOf(noun: Noun, label: string, items: readonly Thing[]): string {
  const [item] = items
  return items.length === 1 && item !== undefined
    ? t().choices.confirm(label, noun.titleOf(item))
    : t().choices.confirmMany(label, items.length, manyWithin(nounTexts(noun.name)))
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
          ? t().choices.typeMany(items.length, manyWithin(nounTexts(noun.name)))
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
