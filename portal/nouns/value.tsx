/** The value of a field, by the name that it has in the API: sizes, times, money, states, links to other nouns. */
import type { ReactNode } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { ago, bytes, gibibytes, mebibytes, money, number, smallMoney, utc } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { typeText } from '../texts/service.ts'
import { Copy } from '../ui/copy.tsx'
import { Tag, Tags } from '../ui/state.tsx'
import { hrefOf, type Noun } from './noun.ts'
import { useThing } from './reads.ts'
import { nounNamed } from './registry.ts'

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

/** As text, for filters and sorting. */
export function textOf(field: string, value: unknown): string {
  if (value === null || value === undefined || value === '') return NONE
  if (typeof value === 'boolean') return value ? t().ui.yes : t().ui.no
  if (typeof value === 'number') return numberText(field, value)
  if (typeof value === 'string') return field.endsWith('_at') ? ago(value) : (translated(value) ?? value)
  if (Array.isArray(value)) return value.length === 0 ? NONE : value.map((each) => textOf('', each)).join(', ')
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
  if (field.endsWith('_at') && typeof value === 'string') return <Time instant={value} />
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
  const text = `${typeText(type)} ${name ?? id.slice(0, 8)}`
  return noun === undefined ? <span dir="auto">{text}</span> : <AriaLink href={hrefOf(noun, { id })}>{text}</AriaLink>
}

/** A link to an item, by its name as soon as that is read. */
function Reference({ noun, id }: { readonly noun: Noun; readonly id: string }): ReactNode {
  const { item } = useThing(noun, id)
  return (
    <AriaLink href={hrefOf(noun, { id })}>
      <span dir="auto">{item === undefined ? id.slice(0, 8) : noun.titleOf(item)}</span>
    </AriaLink>
  )
}
