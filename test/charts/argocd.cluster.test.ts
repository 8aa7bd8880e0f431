/** What Argo CD makes of our objects: the health check of the chart, run by the same Lua. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { healthConditions } from '../../controllers/kit/health.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { openHelm } from './helm.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_MILLISECONDS = 900_000 // the first time, the tools are built
let folder: string
let lua: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-argocd-'))
  lua = await buildTool('glua')
  await buildTool('helm')
}, START_MILLISECONDS)
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A value as Lua writes it. */
function luaOf(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(luaOf).join(', ')}}`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, inner]) => `[${JSON.stringify(name)}] = ${luaOf(inner)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}

async function healthOf(object: object): Promise<string> {
  const check = await readFile(join(ROOT, 'charts/svccloud/files/argocd-health.lua'), 'utf8')
  const file = join(folder, 'check.lua')
  await writeFile(
    file,
    `local obj = ${luaOf(object)}\nlocal function check()\n${check}\nend\nlocal health = ` +
      `check()\nprint(health.status .. "|" .. health.message)\n`,
  )
  return (await promisify(execFile)(lua, [file])).stdout.trim()
}

const metadata = { generation: 2 }
it.each([
  ['nothing is known of it', { metadata }, 'Progressing|Waiting for the first visit of its controller'],
  [
    'its controller has not looked at the newest change',
    { metadata, status: { observedGeneration: 1, conditions: healthConditions('ready', 'Started', '') } },
    'Progressing|The newest change has not been looked at yet',
  ],
  [
    'it is as wanted',
    { metadata, status: { observedGeneration: 2, conditions: healthConditions('ready', 'Started', 'It runs.') } },
    'Healthy|It runs.',
  ],
  [
    'it is on its way',
    {
      metadata,
      status: { observedGeneration: 2, conditions: healthConditions('reconciling', 'Creating', 'The disk is made.') },
    },
    'Progressing|The disk is made.',
  ],
  [
    'it will not come about',
    {
      metadata,
      status: { observedGeneration: 2, conditions: healthConditions('stalled', 'QuotaExceeded', 'No quota.') },
    },
    'Degraded|No quota.',
  ],
  [
    'it is closed on purpose',
    { metadata, status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Closed', message: '' }] } },
    'Suspended|Closed',
  ],
])('when %s', async (_when, object, health) => expect(await healthOf(object)).toBe(health))

it('every kind that shows whether it is ready has the check', async () => {
  const helm = await openHelm('')
  try {
    const rendered = await helm.must(
      'template',
      'cloud',
      join(ROOT, 'charts/svccloud'),
      '--set',
      'database.existingSecret=d,argocd.healthCheck=true',
      '-s',
      'templates/argocd.yaml',
    )
    const checked = [...rendered.matchAll(/resource\.customizations\.health\.svccloud\.dev_(\w+):/g)].map(
      ([, kind]) => kind,
    )
    const definitions = await Promise.all(
      (await readdir(join(ROOT, 'crds'))).map(
        async (file) =>
          parse(await readFile(join(ROOT, 'crds', file), 'utf8')) as {
            spec: { names: { kind: string }; versions: { additionalPrinterColumns?: { name: string }[] }[] }
          },
      ),
    ) // our own files
    const shown = definitions
      .filter(({ spec }) => spec.versions[0]?.additionalPrinterColumns?.some(({ name }) => name === 'Ready'))
      .map(({ spec }) => spec.names.kind)
    expect(checked.toSorted()).toEqual(shown.toSorted())
    expect(checked).toEqual(expect.arrayContaining(['Server', 'ServerGroup', 'Storage']))
  } finally {
    await helm.close()
  }
})
