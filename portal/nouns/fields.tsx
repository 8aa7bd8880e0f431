/** The fields of a form, each as its schema and its registration say. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { t } from '../texts/index.ts'
import { noteIn } from '../texts/notes.ts'
import {
  CardsField,
  Checkbox,
  type Option,
  PairsField,
  PasswordField,
  SelectField,
  Switch,
  TextField,
} from '../ui/field.tsx'
import { focusFirstFault } from '../ui/faults.ts'
import { More, Stack } from '../ui/layout.tsx'
import type { BodySchema, FieldSchema } from '../api/body-schema.ts'
import { type Form, isNeeded, schemaOf } from './form.ts'
import type { FieldViewProps, FormField, Values } from './noun.ts'
import { wordOf } from './value.tsx'

export interface FieldsProps {
  readonly fields: readonly FormField[]
  readonly body: BodySchema
  readonly form: Form
}

export function Fields({ fields, body, form }: FieldsProps): ReactNode {
  const shown = fields.filter(({ isShown }) => isShown?.(form.values) !== false)
  const first = shown.filter(({ isMore }) => isMore !== true)
  const more = shown.filter(({ isMore }) => isMore === true)
  const render = (field: FormField, at: number): ReactNode => (
    <Field key={field.name} field={field} body={body} form={form} isFirst={at === 0} />
  )
  const place = useRef<HTMLDivElement>(null)
  const { faultCount } = form
  useEffect(() => void (faultCount === 0 || focusFirstFault(place.current)), [faultCount])
  return (
    <div className="fields" ref={place}>
      {first.map(render)}
      {more.length === 0 ? null : <More name={t().form.more}>{more.map((field) => render(field, 1))}</More>}
    </div>
  )
}

interface FieldProps {
  readonly field: FormField
  readonly body: BodySchema
  readonly form: Form
  readonly isFirst: boolean
}

type Common = FieldViewProps['common']

export function labelOf(name: string): string {
  // registrations of both portals name fields by text
  const labels: Readonly<Record<string, string>> = t().fields
  return Object.hasOwn(labels, name) ? (labels[name] ?? name) : name.replaceAll('_', ' ')
}

/** The note of the API, which may name other fields and values as programs do; none that only says the label again. */
function noteOf(label: string, description: string | undefined): string | undefined {
  const note = noteIn(description)?.replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, spoken)
  return note === undefined || sameWords(note) === sameWords(label) ? undefined : note
}

const sameWords = (text: string): string => text.toLowerCase().replace(/\.$/, '')

const spoken = (name: string): string => t().form.named(Object.hasOwn(t().fields, name) ? labelOf(name) : wordOf(name))

function Field({ field, body, form, isFirst }: FieldProps): ReactNode {
  const schema = schemaOf(body, field.name)
  const label = field.label?.() ?? labelOf(field.name)
  const common: Common = {
    label,
    note: field.note?.() ?? noteOf(label, schema.description),
    wrong: form.errors[field.name],
    isRequired: isNeeded(body, field) || field.isFirstChosen === true || (schema.default ?? '') !== '',
  }
  const value = form.values[field.name]
  const set = (next: unknown): void => form.set(field.name, next)
  const { view: View } = field
  if (View !== undefined) return <View common={common} value={value} set={set} />
  if (field.useOptions !== undefined)
    return <Choice field={field} useOptions={field.useOptions} common={common} values={form.values} set={set} />
  if (schema.enum !== undefined)
    return (
      <SelectField
        {...common}
        options={schema.enum.map((id) => ({ id, name: wordOf(id) }))}
        value={String(value ?? schema.default ?? '') || undefined}
        onChange={set}
      />
    )
  if (schema.items?.enum !== undefined)
    return (
      <Many
        common={common}
        options={schema.items.enum.map((id) => ({ id, name: wordOf(id) }))}
        value={value}
        set={set}
      />
    )
  if (schema.type === 'boolean')
    return (
      <Switch
        label={common.label}
        note={common.note}
        wrong={common.wrong}
        isOn={(value ?? schema.default) === true}
        onChange={set}
      />
    )
  if (schema.type === 'object')
    return (
      <PairsField label={common.label} note={common.note} wrong={common.wrong} value={Object(value)} onChange={set} />
    )
  if (field.as === 'secret')
    return <PasswordField {...common} value={String(value ?? '')} onChange={set} name={field.name} autoComplete="off" />
  return <Line field={field} schema={schema} common={common} value={value} set={set} isFirst={isFirst} />
}

interface LineProps {
  readonly field: FormField
  readonly schema: FieldSchema
  readonly common: Common
  readonly value: unknown
  readonly set: (value: unknown) => void
  readonly isFirst: boolean
}

const isWhole = (text: string): boolean => /^-?\d+$/.test(text)

function Line({ field, schema, common, value, set, isFirst }: LineProps): ReactNode {
  const isNumber = schema.type === 'integer'
  const isList = schema.type === 'array'
  if (schema.format === 'date-time') return <Instant {...{ field, common, value, set, isFirst }} />
  const fromText = (text: string): unknown => {
    if (isNumber) return text === '' ? undefined : isWhole(text) ? Number(text) : text
    return isList ? text.split(/[\s,]+/).filter((each) => each !== '') : text
  }
  const text = isList && Array.isArray(value) ? value.join(', ') : String(value ?? '')
  return (
    <TextField
      {...common}
      value={text}
      onChange={(next) => set(fromText(next))}
      isLong={field.as === 'long' || field.as === 'code'}
      isCode={field.as === 'code'}
      unit={field.unit?.() ?? unitOf(field.name)}
      name={field.name}
      autoFocus={isFirst}
      {...(isNumber ? { inputMode: 'numeric' as const } : {})}
    />
  )
}

/** As the control of browsers writes it: 2027-01-31T10:20. */
const INSTANT_CHARACTERS = 16

/** An instant to the minute, in UTC as everywhere. */
const Instant = ({ field, common, value, set, isFirst }: Omit<LineProps, 'schema'>): ReactNode => (
  <TextField
    {...common}
    type="datetime-local"
    value={String(value ?? '').slice(0, INSTANT_CHARACTERS)}
    onChange={(text) => set(text === '' ? undefined : `${text}:00Z`)}
    unit="UTC"
    name={field.name}
    autoFocus={isFirst}
  />
)

const unitOf = (name: string): string | undefined =>
  name.endsWith('_gibibytes')
    ? 'GiB'
    : name.endsWith('_seconds')
      ? t().choices.seconds
      : name.endsWith('_days')
        ? t().choices.days
        : undefined

interface ChoiceOfProps {
  readonly field: FormField
  readonly useOptions: NonNullable<FormField['useOptions']>
  readonly common: Common
  readonly values: Values
  readonly set: (value: unknown) => void
}

/** Options are read by a hook of the registration: the component is the same for the field's life. */
function Choice({ field, useOptions, common, values, set }: ChoiceOfProps): ReactNode {
  const [search, setSearch] = useState('')
  const offered = useOptions(values, search)
  const { options: found, hasMore } = 'hasMore' in offered ? offered : { options: offered, hasMore: false }
  const value = values[field.name]
  const [known, setKnown] = useState<ReadonlyMap<string, Option>>(new Map())
  // what was chosen stays one of them when something else is searched for
  const options = withChosen(found, known, value)
  const [canSearch, setCanSearch] = useState(hasMore)
  if (hasMore && !canSearch) setCanSearch(true)
  const first = options.find(({ why }) => why === undefined)?.id
  const isPossible = options.some(({ id, why }) => id === value && why === undefined)
  useEffect(() => {
    if (field.isFirstChosen === true && !isPossible && first !== undefined) set(first)
  })
  const Kind = field.as === 'cards' ? CardsField : SelectField
  const choice =
    field.as === 'many' ? (
      <Many common={common} options={options} value={value} set={set} />
    ) : (
      <Kind {...common} options={options} value={typeof value === 'string' ? value : undefined} onChange={set} />
    )
  if (!canSearch) return choice
  return (
    <Stack gap="tight">
      {choice}
      <TextField
        label={t().form.searchIn(common.label)}
        note={hasMore ? t().form.hasMore : undefined}
        type="search"
        value={search}
        onChange={(text) => {
          setKnown(new Map([...known, ...found.map((each) => [each.id, each] as const)]))
          setSearch(text)
        }}
      />
    </Stack>
  )
}

/** The options that were found, and those that are chosen and were found before. */
export function withChosen(
  found: readonly Option[],
  known: ReadonlyMap<string, Option>,
  value: unknown,
): readonly Option[] {
  const chosen = Array.isArray(value) ? value.map(String) : typeof value === 'string' ? [value] : []
  const missing = chosen.filter((id) => !found.some((option) => option.id === id))
  return [...missing.flatMap((id) => known.get(id) ?? []), ...found]
}

interface ManyProps {
  readonly common: Common
  readonly options: readonly Option[]
  readonly value: unknown
  readonly set: (value: unknown) => void
}

function Many({ common, options, value, set }: ManyProps): ReactNode {
  const chosen = Array.isArray(value) ? value.map(String) : []
  return (
    <fieldset className="field" {...(common.wrong === undefined ? {} : { 'data-invalid': true })}>
      <legend className="label">{common.label}</legend>
      {common.note === undefined ? null : <p className="note">{common.note}</p>}
      {common.wrong === undefined ? null : <p className="wrong">{common.wrong}</p>}
      {options.length === 0 ? <p className="note">{t().ui.nothing}</p> : null}
      <Stack gap="tight">
        {options.map(({ id, name, note }) => (
          <Checkbox
            key={id}
            label={name}
            note={note}
            isOn={chosen.includes(id)}
            onChange={(isOn) => set(isOn ? [...chosen, id] : chosen.filter((each) => each !== id))}
          />
        ))}
      </Stack>
    </fieldset>
  )
}
