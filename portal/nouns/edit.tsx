/** Changing the properties of an item that can be changed directly, such as its name. Only what was changed is sent. */
import { Pencil } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import type { BodySchema } from '../api/body-schema.ts'
import type { OperationId } from '../api/operations.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { Facts, Panel } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { keep } from './actions.tsx'
import { Fields, labelOf } from './fields.tsx'
import { changesOf, faultsOf, useBodies, useForm } from './form.ts'
import type { FormField, Noun, Thing } from './noun.ts'
import { pathTo, send, thingIn } from './reads.ts'
import { Value } from './value.tsx'

const NAMES: readonly FormField[] = [{ name: 'title' }, { name: 'name' }]

/** The panel; nothing for nouns that have no such property. */
export function Properties({ noun, item }: { readonly noun: Noun; readonly item: Thing }): ReactNode {
  const bodies = useBodies()
  const may = useMay()
  const [isOpen, setOpen] = useState(false)
  const { update } = noun
  const schema = update === undefined ? undefined : bodies?.[update]
  if (update === undefined || schema === undefined) return null
  const fields = noun.edit ?? NAMES.filter(({ name }) => schema.properties?.[name] !== undefined)
  if (fields.length === 0) return null
  const shown = fields.filter(({ as, isShown }) => as !== 'secret' && isShown?.(item) !== false)
  return (
    <Panel
      title={t().page.properties}
      buttons={
        may(update) ? (
          <Button kind="quiet" icon={<Pencil aria-hidden="true" />} onPress={() => setOpen(true)}>
            {t().page.edit}
          </Button>
        ) : undefined
      }
    >
      <Facts
        facts={shown.map(({ name, label }) => ({
          name: label?.() ?? labelOf(name),
          value: <Value field={name} value={item[name]} isShort />,
        }))}
      />
      {isOpen ? (
        <Edit noun={noun} update={update} fields={fields} schema={schema} item={item} close={() => setOpen(false)} />
      ) : null}
    </Panel>
  )
}

interface EditProps {
  readonly noun: Noun
  readonly update: OperationId
  readonly fields: readonly FormField[]
  readonly schema: BodySchema
  readonly item: Thing
  readonly close: () => void
}

function Edit({ noun, update, fields, schema, item, close }: EditProps): ReactNode {
  const form = useForm(item)
  // what the page showed when it was opened: changes of others meanwhile are not undone by what nobody has touched
  const [before] = useState(item)
  const [isBusy, setBusy] = useState(false)
  const [isAsking, setAsking] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const goes = noun.editGoes?.(before, form.values) ?? []
  const save = async (): Promise<void> => {
    setBusy(true)
    setRefusal(undefined)
    try {
      const body = changesOf(fields, schema, { before, after: form.values })
      if (Object.keys(body).length > 0) {
        const changed = thingIn(noun, await send(update, { path: pathTo(update, item.id), body }))
        if (changed !== undefined) keep(noun, changed)
      }
      close()
    } catch (error) {
      const refused = asRefusal(update, error)
      setRefusal(refused)
      form.setErrors(refused.fields)
      setBusy(false)
      setAsking(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isBusy) return
    const faults = faultsOf(fields, schema, form.values, t().problem.field)
    form.setErrors(faults)
    if (Object.keys(faults).length > 0) return
    if (goes.length > 0) setAsking(true)
    else void save()
  }
  if (isAsking)
    return (
      <Confirm
        title={t().choices.confirm(t().page.edit, noun.titleOf(item))}
        goes={goes}
        button={t().ui.save}
        isBusy={isBusy}
        onConfirm={() => void save()}
        onClose={() => setAsking(false)}
      />
    )
  return (
    <Dialog title={t().page.edit} onClose={close}>
      <form className="form" onSubmit={submit} noValidate>
        <Fields fields={fields} body={schema} form={form} />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close}>{t().ui.cancel}</Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {t().ui.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
