/** A dialog for any operation: its fields by the route, what it would cost, and what goes and stays. For parts of
 *  items, which have no separate pages. */
import { type ReactNode, useState } from 'react'
import { defined } from '../../domain/defined.ts'
import { readAgain } from '../api/cache.ts'
import type { OperationId } from '../api/operations.ts'
import { ruleOf } from '../api/portal.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { t } from '../texts/index.ts'
import { Confirm } from '../ui/dialog.tsx'
import { notify } from '../ui/toast.tsx'
import { TrialView, useDryRun } from './dry-run.tsx'
import { Fields } from './fields.tsx'
import { bodyOf, faultsOf, itemSchemaOf, useBodies, useForm } from './form.ts'
import type { FormField, Values } from './noun.ts'
import { Once } from './once.tsx'
import { sendOnce } from './reads.ts'
import { useRequestKeys } from './request-key.ts'
import { type Shown, shownIn } from './secrets.ts'

export interface AskProps {
  readonly operation: OperationId
  readonly path?: Readonly<Record<string, string>>
  readonly title: string
  readonly button: string
  readonly text?: string
  readonly fields?: readonly FormField[]
  readonly initial?: Values
  /** Fields are those of the items of this list in the body. */
  readonly itemsOf?: string
  /** What is wrong beside what the schema says, by field. */
  readonly check?: (values: Values) => Readonly<Record<string, string>>
  /** The field that a refusal means by a name; undefined for none of these. */
  readonly fieldOf?: (name: string, values: Values) => string | undefined
  /** Instead of what the fields hold. */
  readonly bodyOf?: (values: Values) => Readonly<Record<string, unknown>>
  readonly goes?: readonly string[]
  readonly stays?: readonly string[]
  readonly type?: string
  /** It takes dry runs: price and quotas are shown while it is filled in. */
  readonly isPriced?: boolean
  /** Reads that show the change. */
  readonly reads: readonly OperationId[]
  readonly onClose: () => void
}

export type Question = Omit<AskProps, 'reads' | 'onClose'>

/** Opens one dialog at a time; the second is the dialog, which has to be somewhere on the page. */
export function useQuestion(reads: readonly OperationId[]): readonly [(question: Question) => void, ReactNode] {
  const [question, ask] = useState<Question>()
  const dialog = question === undefined ? null : <Ask {...question} reads={reads} onClose={() => ask(undefined)} />
  return [ask, dialog]
}

const NO_FIELDS: readonly FormField[] = []

const fieldsIn = ({ fields }: Refusal, fieldOf: (name: string) => string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(fields).map(([name, detail]) => [fieldOf(name), detail]))

export function Ask(props: AskProps): ReactNode {
  const { operation, path = {}, fields = NO_FIELDS, reads, onClose } = props
  const form = useForm(props.initial ?? {})
  const whole = useBodies()?.[operation] ?? { flags: {} }
  const schema = props.itemsOf === undefined ? whole : { ...itemSchemaOf(whole, props.itemsOf), flags: {} }
  const [isBusy, setBusy] = useState(false)
  const [isSent, setSent] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const [shown, setShown] = useState<Shown>()
  const keys = useRequestKeys()
  const body = props.bodyOf?.(form.values) ?? bodyOf(fields, form.values)
  const faults = { ...props.check?.(form.values), ...faultsOf(fields, schema, form.values, t().problem.field) }
  const isComplete = Object.keys(faults).length === 0
  const trial = useDryRun({
    operation,
    path,
    body,
    isOn: props.isPriced === true && whole.takesDryRun === true && isComplete && !isSent,
  })
  const run = async (): Promise<void> => {
    form.setErrors(faults)
    if (!isComplete) return
    setBusy(true)
    setSent(true)
    setRefusal(undefined)
    try {
      const { method } = ruleOf(operation)
      const { answer, isLost } = await sendOnce(operation, {
        path,
        ...(method === 'DELETE' || Object.keys(body).length === 0 ? {} : { body }),
        ...(method === 'POST' ? { idempotencyKey: keys.of(form.values) } : {}),
      })
      await readAgain(...reads)
      notify(t().operations.started(props.button))
      const once = shownIn(answer, { id: operation, name: props.title, hasSecrets: isLost })
      if (once === undefined) onClose()
      else setShown(once)
    } catch (error) {
      const refused = asRefusal(operation, error)
      setRefusal(refused)
      setSent(false)
      form.setErrors(fieldsIn(refused, (name) => props.fieldOf?.(name, form.values) ?? name))
    }
    setBusy(false)
  }
  if (shown !== undefined) return <Once shown={[shown]} isReadable onClose={onClose} />
  return (
    <Confirm
      title={props.title}
      button={props.button}
      isDanger={ruleOf(operation).isDestructive === true}
      isBusy={isBusy}
      refusal={refusal}
      goes={props.goes ?? []}
      stays={props.stays ?? []}
      type={props.type}
      {...defined({ text: props.text })}
      onConfirm={() => void run()}
      onClose={onClose}
    >
      {fields.length === 0 ? null : <Fields fields={fields} body={schema} form={form} />}
      {props.isPriced === true ? <TrialView trial={trial} /> : null}
    </Confirm>
  )
}
