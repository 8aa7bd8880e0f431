/** A dialog for any operation: its fields by the route, what it would cost, and what goes and stays. For parts of
 *  items, which have no separate pages. */
import { type ReactNode, useMemo, useState } from 'react'
import { defined } from '../../domain/defined.ts'
import { readAgain } from '../api/cache.ts'
import type { OperationId } from '../api/operations.ts'
import { ruleOf } from '../api/portal.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { uuid } from '../system.ts'
import { t } from '../texts/index.ts'
import { Confirm } from '../ui/dialog.tsx'
import { notify } from '../ui/toast.tsx'
import { TrialView, useDryRun } from './dry-run.tsx'
import { Fields } from './fields.tsx'
import { bodyOf, faultsOf, useBodies, useForm } from './form.ts'
import type { FormField, Values } from './noun.ts'
import { Once } from './once.tsx'
import { type Secrets, secretsIn } from './secrets.ts'
import { send } from './reads.ts'

export interface AskProps {
  readonly operation: OperationId
  readonly path?: Readonly<Record<string, string>>
  readonly title: string
  readonly button: string
  readonly text?: string
  readonly fields?: readonly FormField[]
  readonly initial?: Values
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

export function Ask(props: AskProps): ReactNode {
  const { operation, path = {}, fields = NO_FIELDS, reads, onClose } = props
  const form = useForm(props.initial ?? {})
  const schema = useBodies()?.[operation] ?? { flags: {} }
  const [isBusy, setBusy] = useState(false)
  const [isSent, setSent] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const [secrets, setSecrets] = useState<Secrets>()
  // the same form makes one thing, however often it is sent; an edit makes another
  const key = useMemo(() => ({ of: form.values, key: uuid() }), [form.values])
  const body = props.bodyOf?.(form.values) ?? bodyOf(fields, form.values)
  const faults = faultsOf(fields, schema, form.values, t().problem.field)
  const isComplete = Object.keys(faults).length === 0
  const trial = useDryRun({
    operation,
    path,
    body,
    isOn: props.isPriced === true && schema.takesDryRun === true && isComplete && !isSent,
  })
  const run = async (): Promise<void> => {
    form.setErrors(faults)
    if (!isComplete) return
    setBusy(true)
    setSent(true)
    setRefusal(undefined)
    try {
      const { method } = ruleOf(operation)
      const answer = await send(operation, {
        path,
        ...(method === 'DELETE' || Object.keys(body).length === 0 ? {} : { body }),
        ...(method === 'POST' ? { idempotencyKey: key.key } : {}),
      })
      await readAgain(...reads)
      notify(t().operations.started(props.button))
      const shown = secretsIn(answer)
      if (shown === undefined) onClose()
      else setSecrets(shown)
    } catch (error) {
      const refused = asRefusal(operation, error)
      setRefusal(refused)
      setSent(false)
      form.setErrors(refused.fields)
    }
    setBusy(false)
  }
  if (secrets !== undefined) return <Once secrets={secrets} onClose={onClose} />
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
