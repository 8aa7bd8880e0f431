/** Dashboards and alerts ask for metrics that some process has: a name that nobody registers would be silent for ever.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const CHART = join(ROOT, 'charts/svccloud')
const SOURCES = ['kit', 'apiserver', 'controllers', 'agents', 'embedded/object-storage', 'embedded/control-planes']
const WORDS = new Set(['by', 'and', 'or', 'unless', 'without', 'for'])

/** Names of the series that a PromQL expression reads. */
function seriesIn(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(?:by|without) ?\([^)]*\)/g, '')
  return [...bare.matchAll(/\b([a-z_]+)\b(?!\s*\()/g)].map(([, name]) => name ?? '').filter((name) => !WORDS.has(name))
}

interface Registered {
  readonly type: string
  readonly labels: readonly string[]
}

const wordsIn = (list = ''): string[] => [...list.matchAll(/'([a-z_]+)'/g)].map(([, word = '']) => word)
const labelsIn = (text: string): string[] | undefined =>
  /labelNames: \[([^\]]*)\]/.test(text) ? wordsIn(/labelNames: \[([^\]]*)\]/.exec(text)?.[1]) : undefined

/** The metrics of one file: each where it is made, with its own labels or those that its siblings share
 *  (`...labelled`), those that a local `gauge` makes, and those of a list. */
function registeredIn(text: string): [string, Registered][] {
  const made = [...text.matchAll(/new (Counter|Gauge|Histogram)\(\{([^}]*)/g)].flatMap(([, type = '', body = '']) => {
    const name = /\bname: '([a-z_]+)'/.exec(body)?.[1]
    const shared = /\.\.\.(labelled|timed)\b/.test(body) ? sharedLabels(text, name ?? '') : []
    return name === undefined ? [] : [[name, { type, labels: labelsIn(body) ?? shared }] as const]
  })
  const maker = /const gauge = [\s\S]*?new Gauge\(\{([\s\S]*?)\}\)/.exec(text)?.[1] ?? ''
  const gauges = [...text.matchAll(/^\s*gauge\(\s*'([a-z_]+)'/gm)].map(
    ([, name = '']) => [name, { type: 'Gauge', labels: labelsIn(maker) ?? [] }] as const,
  )
  const listed = [...text.matchAll(/^\s*name: '(svccloud_[a-z_]+)',\n\s*help:/gm)].map(
    ([, name = '']) => [name, { type: 'Gauge', labels: [] }] as const,
  )
  return [...listed, ...made, ...gauges].map(([name, metric]) => [name, metric])
}

/** The labels of the last `const labelled` before the metric. */
function sharedLabels(text: string, name: string): string[] {
  const before = text.slice(0, text.indexOf(`'${name}'`))
  return labelsIn(before.slice(before.lastIndexOf('const labelled'))) ?? []
}

/** Every metric that the sources register, by its name. */
async function registered(): Promise<Map<string, Registered>> {
  const found = new Map<string, Registered>()
  for (const folder of SOURCES) {
    for (const file of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!file.endsWith('.ts')) continue
      for (const [name, metric] of registeredIn(await readFile(join(ROOT, folder, file), 'utf8')))
        found.set(name, metric)
    }
  }
  return found
}

async function expressions(): Promise<string[]> {
  const panels: { targets: { expr: string }[] }[] = []
  for (const name of (await readdir(join(CHART, 'files'))).filter((file) => file.startsWith('dashboard')))
    panels.push(...JSON.parse(await readFile(join(CHART, 'files', name), 'utf8')).panels)
  const alerts = (await readFile(join(CHART, 'templates/monitoring.yaml'), 'utf8')).matchAll(
    /^ *expr: (?:\{\{ printf )?"?(.*?)"?(?: \. \. \| quote \}\})?$/gm,
  )
  return [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...[...alerts].map(([, expression = '']) => expression),
  ]
}

it('dashboards and alerts read only what a process registers', async () => {
  const metrics = await registered()
  const series = new Set((await expressions()).flatMap(seriesIn))
  const isKnown = (name: string) =>
    metrics.has(name) || metrics.get(name.replace(/_(bucket|count|sum)$/, ''))?.type === 'Histogram'
  expect(series.size).toBeGreaterThan(8)
  expect([...series].filter((name) => !isKnown(name))).toEqual([])
})

it('they group by labels that the metric has', async () => {
  const metrics = await registered()
  for (const expression of await expressions()) {
    const labels = [...expression.matchAll(/\bby \(([^)]*)\)/g)]
      .flatMap(([, list = '']) => list.split(/, ?/))
      .filter((label) => label !== 'le')
    const offered = seriesIn(expression).flatMap(
      (name) => metrics.get(name.replace(/_(bucket|count|sum)$/, ''))?.labels ?? [],
    )
    expect(
      labels.filter((label) => !offered.includes(label)),
      expression,
    ).toEqual([])
  }
})

it('our metrics have one prefix; others are named by controller-runtime and client-go', async () => {
  const names = [...(await registered()).keys()]
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter((name) => !/^(svccloud|workqueue|controller_runtime|leader_election)_/.test(name))).toEqual([])
})

it.each([
  'svccloud_email_outbox_pending',
  'svccloud_audit_unverified_entries',
  'svccloud_audit_broken_accounts',
  'svccloud_nodes',
  'svccloud_deletions_overdue',
  'svccloud_change_intents_unknown',
  'svccloud_object_storage_unreachable',
  'svccloud_object_storage_nearly_full',
  'svccloud_object_storage_moves_waiting',
  'svccloud_object_storage_responses_total',
  'svccloud_object_storage_refusals_total',
])('%s has a panel and an alert', async (name) => {
  expect(
    (await expressions()).filter((expression) => seriesIn(expression).includes(name)).length,
  ).toBeGreaterThanOrEqual(2)
})

it('somebody hears of money that goes wrong, and the dashboard shows each of its figures', async () => {
  const money = [...(await registered()).keys()].filter((name) => /_(metering|invoices|payment)_/.test(name))
  expect(money.length).toBeGreaterThan(6)
  const dashboard = await readFile(join(CHART, 'files/dashboard.json'), 'utf8')
  expect(money.filter((name) => !dashboard.includes(name))).toEqual([])
  const alerts = await readFile(join(CHART, 'templates/monitoring.yaml'), 'utf8')
  const alarming = money.filter((name) => new RegExp(`${name}\\b`).test(alerts))
  expect(alarming.toSorted()).toEqual([
    'svccloud_invoices_failed',
    'svccloud_invoices_unsent_failed',
    'svccloud_metering_lag_seconds',
    'svccloud_payment_differences',
    'svccloud_payment_events_waiting',
  ])
})
