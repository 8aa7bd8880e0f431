/** The value of a field, by the name that it has in the API: sizes, times, money, states, links to other nouns. */
import type { ReactNode } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { ago, bytes, gibibytes, mebibytes, money, number, smallMoney, utc } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { typeText } from '../texts/service.ts'
import { Copy } from '../ui/copy.tsx'
import { Tag, Tags } from '../ui/state.tsx'
import { hrefOf, type Noun, type Thing } from './noun.ts'
import { useThing } from './reads.ts'
import { nounNamed } from './registry.ts'
import { shortId, useTitle } from './titles.ts'

const NONE = '–'

/** Fields that name an item of another noun. */
const REFERENCES: Readonly<Record<string, string>> = {
  server_id: 'server',
  storage_id: 'storage',
  origin_storage_id: 'storage',
  boot_storage_id: 'storage',
  network_id: 'network',
  router_id: 'router',
  node_id: 'node',
  account_id: 'account',
  dedicated_account_id: 'account',
  server_group_id: 'server_group',
  init_script_id: 'init_script',
}
/** Fields that people copy. */
const COPIED = new Set([
  'id',
  'public_ipv4',
  'public_ipv6',
  'ssh_command',
  'mac_address',
  'address',
  'fingerprint',
  'ipv4_cidr',
  'ipv6_prefix',
  'gateway_ipv4',
])

/** A word of the service, such as a state, in the language of the page; as it is when the language has none for it. */
export const wordOf = (word: string): string => translated(word) ?? word.replaceAll('_', ' ')

// names are no members of the table: `constructor` is one of every object
const translated = (word: string): string | undefined =>
  Object.hasOwn(t().choices.words, word) ? t().choices.words[word] : undefined

/** Whether the field holds an instant. */
export const isInstant = (field: string): boolean => /_(?:at|since|from|until)$/.test(field)

/** Amounts whose names have no unit. */
const AMOUNTS = new Set([
  'allocated',
  'clusters_capacity',
  'clusters_hosted',
  'max_redemptions',
  'pending_deliveries',
  'pending_entries',
  'redemptions',
  'total',
  'vcpus',
])

/** Whether the field holds a number that is compared with those of other rows. */
export const isAmount = (field: string): boolean =>
  AMOUNTS.has(field) || /_(?:count|cents|bytes|gigabytes|gibibytes|mebibytes)$/.test(field)

/** Fields whose texts are words of the service; others may be anything. */
const WORDS = new Set(['durability', 'end_reason', 'family', 'image_status', 'kind', 'mode', 'roles', 'type', 'use'])

/** As text, for filters and sorting. */
export function textOf(field: string, value: unknown): string {
  if (value === null || value === undefined || value === '') return NONE
  if (typeof value === 'boolean') return value ? t().ui.yes : t().ui.no
  if (typeof value === 'number') return numberText(field, value)
  if (typeof value === 'string')
    return isInstant(field) ? ago(value) : WORDS.has(field) ? wordOf(value) : (translated(value) ?? value)
  if (Array.isArray(value)) return value.length === 0 ? NONE : value.map((each) => textOf(field, each)).join(', ')
  return JSON.stringify(value)
}

function numberText(field: string, value: number): string {
  // a name and not an amount
  if (field === 'port') return String(value)
  if (field.endsWith('_gibibytes')) return gibibytes(value)
  if (field.endsWith('_mebibytes')) return mebibytes(value)
  if (field.endsWith('_bytes')) return bytes(value)
  if (field.endsWith('_millicents')) return smallMoney(value)
  if (field.endsWith('_cents')) return money(value)
  if (field.endsWith('_days')) return `${number(value)} ${t().choices.days}`
  return number(value)
}

export interface ValueProps {
  readonly field: string
  readonly value: unknown
  /** In a table there is no room for buttons. */
  readonly isShort?: boolean
}

export function Value({ field, value, isShort = false }: ValueProps): ReactNode {
  if (value === null || value === undefined || value === '') return NONE
  if (field === 'labels' && typeof value === 'object') return <Labels labels={Object(value)} />
  if (field === 'resource' && typeof value === 'object') return <Resource {...asResource(value)} />
  const reference = REFERENCES[field]
  const target = reference === undefined ? undefined : nounNamed(reference)
  if (target !== undefined && typeof value === 'string') return <Reference noun={target} id={value} />
  if (isInstant(field) && typeof value === 'string') return <Time instant={value} />
  if (!isShort && COPIED.has(field) && typeof value === 'string') return <Copy text={value} />
  return <span dir="auto">{textOf(field, value)}</span>
}

export const Labels = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): ReactNode => {
  const entries = Object.entries(labels)
  return entries.length === 0 ? (
    NONE
  ) : (
    <Tags>
      {entries.map(([key, value]) => (
        <Tag key={key}>{value === '' ? key : `${key}: ${value}`}</Tag>
      ))}
    </Tags>
  )
}

/** In words from now; in full on hover and for screen readers. */
export const Time = ({ instant }: { readonly instant: string }): ReactNode => (
  <time dateTime={instant} title={utc(instant)}>
    {ago(instant)}
  </time>
)

interface ResourceName {
  readonly type: string
  readonly id: string
  readonly name: string | null
}

const asResource = (value: object): ResourceName => value as ResourceName // as operations have it

/** What an operation changes: a link where it has a page. */
export function Resource({ type, id, name }: ResourceName): ReactNode {
  const noun = nounNamed(type)
  const text = `${typeText(type)} ${name ?? shortId(id)}`
  if (name === null && noun?.namedAfter !== undefined) return <Reference noun={noun} id={id} none={text} />
  return noun === undefined ? <span dir="auto">{text}</span> : <AriaLink href={hrefOf(noun, { id })}>{text}</AriaLink>
}

interface ReferenceProps {
  readonly noun: Noun
  readonly id: string
  /** Until it is read, and when there is no such item. */
  readonly none?: string
}

/** A link to an item, by its name as soon as that is read. */
export function Reference({ noun, id, none = shortId(id) }: ReferenceProps): ReactNode {
  const { item } = useThing(noun, id)
  return (
    <AriaLink href={hrefOf(noun, { id })}>
      {item === undefined ? <span dir="auto">{none}</span> : <Title noun={noun} item={item} />}
    </AriaLink>
  )
}

interface TitleProps {
  readonly noun: Noun
  readonly item: Thing
}

/** The name of an item. */
export const Title = ({ noun, item }: TitleProps): ReactNode =>
  noun.namedAfter?.idOf(item) === undefined ? (
    <span dir="auto">{noun.titleOf(item)}</span>
  ) : (
    <TitleAfter noun={noun} item={item} />
  )

const TitleAfter = ({ noun, item }: TitleProps): ReactNode => <span dir="auto">{useTitle(noun, item)}</span>
