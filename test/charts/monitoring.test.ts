/** Dashboards and alerts ask for metrics that some process has: a name that nobody registers would be silent for ever.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const CHART = join(ROOT, 'charts/svccloud')
const SOURCES = ['kit', 'apiserver', 'controllers', 'agents', 'embedded/object-storage', 'integrations', 'hosting']
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
  const maker = /const gauge = \([\s\S]*?new Gauge\(\{([\s\S]*?)\}\)/.exec(text)?.[1] ?? ''
  const gauges = [...text.matchAll(/^\s*gauge\(\s*'([a-z_]+)'/gm)].map(
    ([, name = '']) => [name, { type: 'Gauge', labels: labelsIn(maker) ?? [] }] as const,
  )
  const whole = [
    ...text.matchAll(/^\s*(?:(?:const \w+ = )?(counter|total)|\w+: (counter))\(\s*'(svccloud_[a-z_]+)'/gm),
  ].map(([, _one, _other, name = '']) => [name, { type: 'Counter', labels: labelsAfter(text, name) }] as const)
  const listed = [...text.matchAll(/^\s*name: '(svccloud_[a-z_]+)',\n\s*help:/gm)].map(
    ([, name = '']) => [name, { type: 'Gauge', labels: [] }] as const,
  )
  return [...listed, ...made, ...gauges, ...whole].map(([name, metric]) => [name, metric])
}

/** The labels of the last `const labelled` before the metric. */
function sharedLabels(text: string, name: string): string[] {
  const before = text.slice(0, text.indexOf(`'${name}'`))
  return labelsIn(before.slice(before.lastIndexOf('const labelled'))) ?? []
}

/** Those that are handed to a local maker, as a list that ends its call. */
const labelsAfter = (text: string, name: string): string[] =>
  wordsIn(/^[^()]*?,\s*\[([^\]]*)\],?\s*\)/.exec(text.slice(text.indexOf(`'${name}'`) + name.length + 2))?.[1])

/** Every metric that the sources register, by its name. */
const registered = (): Promise<ReadonlyMap<string, Registered>> => (read ??= readRegistered())
let read: Promise<ReadonlyMap<string, Registered>> | undefined

async function readRegistered(): Promise<Map<string, Registered>> {
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

async function panelExpressions(): Promise<string[]> {
  const panels: { targets: { expr: string }[] }[] = []
  for (const name of (await readdir(join(CHART, 'files'))).filter((file) => file.startsWith('dashboard')))
    panels.push(...JSON.parse(await readFile(join(CHART, 'files', name), 'utf8')).panels)
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
}

async function alertExpressions(): Promise<string[]> {
  const alerts = (await readFile(join(CHART, 'templates/monitoring.yaml'), 'utf8')).matchAll(
    /^ *expr: (?:\{\{ printf )?"?(.*?)"?(?: \. \. \| quote \}\})?$/gm,
  )
  return [...alerts].map(([, expression = '']) => expression)
}

const expressions = async (): Promise<string[]> => [...(await panelExpressions()), ...(await alertExpressions())]

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

/** What a person reads when something else has called them, or what follows the load. */
const WITHOUT_PANEL: Readonly<Record<string, readonly string[]>> = {
  'of controller-runtime’s own dashboards': [
    'controller_runtime_active_workers',
    'controller_runtime_max_concurrent_reconciles',
    'controller_runtime_reconcile_time_seconds',
    'workqueue_adds_total',
    'workqueue_longest_running_processor_seconds',
    'workqueue_queue_duration_seconds',
    'workqueue_retries_total',
    'workqueue_unfinished_work_seconds',
    'workqueue_work_duration_seconds',
  ],
  'says which version runs': ['svccloud_build_info'],
  'follows the number of objects': [
    'svccloud_reflector_lists_total',
    'svccloud_reflector_objects',
    'svccloud_reflector_watches_total',
  ],
  'what a server may use; the panel shows what it uses': ['svccloud_server_cpu_cores'],
}
/** What calls nobody. */
const WITHOUT_ALERT: Readonly<Record<string, readonly string[]>> = {
  ...WITHOUT_PANEL,
  'says how much there is': [
    'controller_runtime_reconcile_total',
    'svccloud_databases',
    'svccloud_invoices_unsent',
    'svccloud_invoices_waiting',
    'svccloud_kubeconfigs_awaiting',
    'svccloud_kubernetes_clusters',
    'svccloud_node_guests',
    'svccloud_object_storage_engine_starts_total',
    'svccloud_object_storage_engines',
    'svccloud_object_storage_received_bytes_total',
    'svccloud_object_storage_requests_total',
    'svccloud_object_storage_sent_bytes_total',
    'svccloud_object_storage_tenants',
    'svccloud_audit_sinks_failing',
    'svccloud_webhook_deliveries_pending',
    'svccloud_webhooks_paused',
    'svccloud_object_storage_used_bytes',
    'svccloud_storage_bytes',
    'svccloud_storage_operations',
  ],
  'of a server, for its owner': [
    'svccloud_server_cpu_seconds_total',
    'svccloud_server_disk_read_bytes_total',
    'svccloud_server_disk_written_bytes_total',
    'svccloud_server_memory_bytes',
    'svccloud_server_network_received_bytes_total',
    'svccloud_server_network_transmitted_bytes_total',
  ],
  'the archive that fails has an alert, and is what is late': ['svccloud_databases_archive_lag_seconds'],
  'a reader that starts again reads its lists': [
    'svccloud_change_readers_cut_off_total',
    'svccloud_change_resets_total',
  ],
  'tenants that fail have an alert': ['svccloud_object_storage_up'],
  'limits of the process hold everywhere': ['svccloud_object_storage_bounds'],
  'lists and watches that fail have an alert; these are made good by the next list': [
    'svccloud_reflector_relist_corrections_total',
    'svccloud_reflector_silent_watches_total',
  ],
}

const seriesOf = (texts: readonly string[]): ReadonlySet<string> =>
  new Set(texts.flatMap(seriesIn).map((name) => name.replace(/_(bucket|count|sum)$/, '')))

it('each metric has a panel and an alert, or is on a list with the reason, and no list has others', async () => {
  const names = [...(await registered()).keys()].toSorted()
  const missing = (texts: readonly string[]) => names.filter((name) => !seriesOf(texts).has(name))
  expect(names.length).toBeGreaterThan(70)
  expect(missing(await panelExpressions())).toEqual(Object.values(WITHOUT_PANEL).flat().toSorted())
  expect(missing(await alertExpressions())).toEqual(Object.values(WITHOUT_ALERT).flat().toSorted())
})

it('each alert links to its own section of the runbook, and the runbook has no others', async () => {
  const rules = await readFile(join(CHART, 'templates/monitoring.yaml'), 'utf8')
  const alerts = rules.split('- alert: ').slice(1)
  const runbook = await readFile(join(ROOT, 'docs/alerts.md'), 'utf8')
  const sections = runbook.split(/^### /m).slice(1)
  const names = alerts.map((text) => text.split('\n')[0] ?? '')
  expect(names.length).toBeGreaterThan(40)
  for (const [index, text] of alerts.entries())
    expect(text).toContain(`runbook: "docs/alerts.md#${names[index]?.toLowerCase()}"`)
  expect(sections.map((text) => text.split('\n')[0] ?? '').toSorted()).toEqual([...new Set(names)].toSorted())
  for (const text of sections) expect(text.split('\n')[1]?.length).toBeGreaterThan(20)
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
