/** Dashboards and alerts ask for metrics that some process has: a name that nobody registers would be silent for ever.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const CHART = join(ROOT, 'charts/svccloud')
const SOURCES = ['kit', 'apiserver', 'controllers', 'agents']
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
 *  (`...labelled`), and those that a local `gauge` makes. */
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
  return [...made, ...gauges].map(([name, metric]) => [name, metric])
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
  const dashboard = JSON.parse(await readFile(join(CHART, 'files/dashboard.json'), 'utf8')) as {
    panels: { targets: { expr: string }[] }[]
  } // our own file
  const alerts = (await readFile(join(CHART, 'templates/monitoring.yaml'), 'utf8')).matchAll(
    /^ *expr: (?:\{\{ printf )?"?(.*?)"?(?: \. \. \| quote \}\})?$/gm,
  )
  return [
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
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

it.each([
  'svc_email_outbox_pending',
  'svc_audit_unverified_entries',
  'svc_audit_broken_accounts',
  'svccloud_nodes',
  'svccloud_deletions_overdue',
  'svccloud_change_intents_unknown',
])('%s has a panel and an alert', async (name) => {
  expect(
    (await expressions()).filter((expression) => seriesIn(expression).includes(name)).length,
  ).toBeGreaterThanOrEqual(2)
})
