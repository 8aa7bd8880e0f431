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

/** Every metric that the sources register, by its name. */
async function registered(): Promise<Map<string, Registered>> {
  const found = new Map<string, Registered>()
  for (const folder of SOURCES) {
    for (const file of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!file.endsWith('.ts')) continue
      const text = await readFile(join(ROOT, folder, file), 'utf8')
      for (const [, type = '', name = '', rest = ''] of text.matchAll(
        /new (Counter|Gauge|Histogram)\(\{\s*name: '([a-z_]+)'([^}]*)/g,
      )) {
        found.set(name, {
          type,
          labels: [...(/labelNames: \[([^\]]*)\]/.exec(rest)?.[1] ?? '').matchAll(/'([a-z_]+)'/g)].map(
            ([, label]) => label ?? '',
          ),
        })
      }
      for (const [, name = ''] of text.matchAll(/^\s*gauge\('([a-z_]+)'/gm))
        found.set(name, { type: 'Gauge', labels: [] })
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
])('%s has a panel and an alert', async (name) => {
  expect(
    (await expressions()).filter((expression) => seriesIn(expression).includes(name)).length,
  ).toBeGreaterThanOrEqual(2)
})
