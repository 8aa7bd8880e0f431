/** Output for people and programs: tables, JSON, YAML, or ids only. */
import { stringify } from 'yaml'
import { didYouMean, listed } from '../domain/suggestion.ts'
import { isMembers, type Members, asMembers } from './api.ts'
import { chart, pointsOf } from './chart.ts'
import { usageFailure } from './exit.ts'

export const FORMATS = ['table', 'json', 'yaml', 'name'] as const
export type Format = (typeof FORMATS)[number]

export interface Style {
  readonly format: Format
  readonly columns: readonly string[] | undefined
  /** Bold headings. */
  readonly hasColor: boolean
}

/** Fields shown first, in this order, if the answer has them. */
const PREFERRED = [
  'id',
  'date',
  'period',
  'resource_type',
  'name',
  'hostname',
  'title',
  'label',
  'kind',
  'status',
  'state',
  'zone',
  'region',
  'plan',
  'family',
  'cores',
  'memory_mebibytes',
  'storage_gibibytes',
  'size_gibibytes',
  'address',
  'server_id',
  'target',
  'price_monthly_cents',
  'price_hourly_millicents',
  'template',
  'os_family',
  'os_version',
  'image_status',
  'public_ipv6',
  'fingerprint',
  'hours',
  'total_cents',
  'amount_due_cents',
  'amount_cents',
  'remaining_cents',
  'payment_status',
  'limit',
  'used',
  'step',
  'action',
  'outcome',
  'at',
  'created_at',
]
const COLUMNS_MAXIMUM = 8

/** The output for an answer, with a final newline; empty when there is none. Throws a Failure for columns that the
 *  answer does not have. */
export function render(body: unknown, style: Style): string {
  if (body === undefined) return ''
  if (style.format === 'json') return `${JSON.stringify(body, null, 2)}\n`
  if (style.format === 'yaml' || isDryRun(body)) return stringify(body)
  const { items: listed } = asMembers(body)
  const items: readonly unknown[] | undefined = Array.isArray(listed) ? listed : undefined
  const resource = items === undefined ? resourceOf(body) : undefined
  const points = isMembers(resource) && style.format === 'table' ? pointsOf(resource) : undefined
  if (points !== undefined) return lines(chart(points))
  if (style.format === 'name')
    return lines(
      (items ?? [resource]).map((item) => (isMembers(item) ? oneLine(item['id'] ?? item['name']) : oneLine(item))),
    )
  if (items !== undefined) return table(items.filter(isMembers), style)
  return isMembers(resource) ? sheet(resource, style) : `${text(resource)}\n`
}

/** What a dry run would do is no resource, whose fields a table could show. */
const isDryRun = (body: unknown): boolean => asMembers(body)['dry_run'] === true

/** The content of an envelope: for `{server: {…}}` the server, also beside an operation. */
function resourceOf(body: unknown): unknown {
  if (!isMembers(body)) return body
  const inside = Object.entries(body).filter(([, value]) => isMembers(value))
  const [first] = inside.filter(([name]) => name !== 'operation').concat(inside)
  return first !== undefined && inside.length === Object.keys(body).length ? first[1] : body
}

const lines = (texts: readonly string[]): string => texts.map((line) => `${line}\n`).join('')
const text = (value: unknown): string =>
  value === null || value === undefined ? '-' : typeof value === 'object' ? JSON.stringify(value) : String(value)
const at = (item: Members, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (isMembers(value) ? value[name] : undefined), item)
/** A value on one line, without characters that move the reader's cursor. */
export const oneLine = (value: unknown): string => text(value).replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')

function checkColumns(items: readonly Members[], columns: readonly string[] | undefined): void {
  const known = [...new Set(items.flatMap((item) => Object.keys(item)))]
  const unknown = columns?.find((path) => !known.includes(path.split('.')[0] ?? ''))
  if (unknown === undefined || items.length === 0) return
  throw usageFailure(`there is no column ${unknown}${didYouMean(unknown, known) || `; there are ${listed(known)}`}`)
}

function table(items: readonly Members[], { columns, hasColor }: Style): string {
  if (items.length === 0) return ''
  checkColumns(items, columns)
  const chosen = columns ?? columnsOf(items)
  const rows = [
    chosen.map((name) => name.toUpperCase().replaceAll('_', ' ')),
    ...items.map((item) => chosen.map((name) => oneLine(at(item, name)))),
  ]
  const widths = chosen.map((_name, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return lines(
    rows.map((row, number) => {
      const line = row
        .map((value, index) => (index === row.length - 1 ? value : value.padEnd(widths[index] ?? 0)))
        .join('  ')
      return number === 0 && hasColor ? `\u001b[1m${line}\u001b[0m` : line
    }),
  )
}

function columnsOf(items: readonly Members[]): readonly string[] {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))]
  const isPlain = (name: string) => items.every((item) => typeof item[name] !== 'object' || item[name] === null)
  const preferred = PREFERRED.filter((name) => names.includes(name))
  return (preferred.length > 1 ? preferred : names.filter(isPlain)).slice(0, COLUMNS_MAXIMUM)
}

function sheet(resource: Members, { columns, hasColor }: Style): string {
  checkColumns([resource], columns)
  const names = columns ?? Object.keys(resource)
  const width = Math.max(0, ...names.map((name) => name.length))
  return lines(
    names.map((name) => {
      const label = name.padEnd(width)
      return `${hasColor ? `\u001b[1m${label}\u001b[0m` : label}  ${oneLine(at(resource, name))}`
    }),
  )
}
