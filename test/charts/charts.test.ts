/** What must be true of the charts and images whatever the cluster: they agree with the processes that they start. */

import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { NodeAgentSettings } from '../../agents/node/settings.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import { ApiServerSettings } from '../../apiserver/settings.ts'
import { CHANGES } from '../../changes/index.ts'
import { ControllersSettings } from '../../controllers/settings.ts'
import { MigrationsSettings } from '../../db/settings.ts'
import { NODE_RULES } from '../../embedded/kubernetes/access/default-roles.ts'
import { ControlPlanesHostSettings } from '../../hosting/pods/process-settings.ts'
import { variablesOf } from '../../kit/sys/settings.ts'
import { RESOURCES } from '../../resources/index.ts'
import { VERSION } from '../../domain/version.ts'
import { CHART_CRD_FOLDER, CHART_ROLE_FOLDER, CHARTS, chartReadmes, crdFiles, roleFiles } from '../../tools/generate.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFile(join(ROOT, path), 'utf8')
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found ?? '')

/** The leaves of a values file as dotted paths; an empty list, an empty map and `resources` are leaves. */
function leaves(value: unknown, path = ''): string[] {
  const isBranch =
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length > 0 &&
    !path.endsWith('resources')
  return isBranch
    ? Object.entries(value).flatMap(([name, below]) => leaves(below, path === '' ? name : `${path}.${name}`))
    : [path]
}

describe.each(CHARTS)('chart %s', (chart) => {
  it('documents every value', async () => {
    const table = matches(await read(`charts/${chart}/README.md`), /^\| `([^`]+)` \|/gm)
    expect(table.toSorted()).toEqual(leaves(parse(await read(`charts/${chart}/values.yaml`))).toSorted())
  })

  it('has a README as its schema makes it', async () => {
    expect(await read(`charts/${chart}/README.md`)).toBe((await chartReadmes()).get(`${chart}/README.md`))
  })

  it('has a schema for every value', async () => {
    const schema = JSON.parse(await read(`charts/${chart}/values.schema.json`)) as {
      properties: Record<string, unknown>
    }
    expect(Object.keys(schema.properties).toSorted()).toEqual(
      ['global', ...Object.keys(parse(await read(`charts/${chart}/values.yaml`)) as object)].toSorted(),
    )
  })
})

it('holds kinds and roles as they are generated, as files: Helm warns of links', async () => {
  for (const [folder, files] of [
    [CHART_CRD_FOLDER, crdFiles()],
    [CHART_ROLE_FOLDER, roleFiles()],
  ] as const) {
    const entries = await readdir(join(ROOT, folder), { withFileTypes: true })
    expect(
      entries
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual([...files.keys()].toSorted())
    for (const [name, text] of files) expect(await read(join(folder, name)), name).toBe(text)
  }
})

it('everything that is released has one version', async () => {
  const packages = ['package.json', 'portal/package.json', 'services/package.json'].map(
    async (file) => JSON.parse(await read(file)) as Versions,
  )
  const charts = CHARTS.map(async (chart) => parse(await read(`charts/${chart}/Chart.yaml`)) as Versions)
  const versions = (await Promise.all([...packages, ...charts])).flatMap(({ version, appVersion }) => [
    version,
    appVersion ?? version,
  ])
  expect(new Set(versions)).toEqual(new Set([VERSION]))
})
interface Versions {
  readonly version: string
  readonly appVersion?: string
}

const PROCESSES = [
  { template: 'svccloud/templates/apiserver.yaml', main: 'apiserver/main.ts', schema: ApiServerSettings },
  { template: 'svccloud/templates/controllers.yaml', main: 'controllers/main.ts', schema: ControllersSettings },
  { template: 'svccloud/templates/migrations.yaml', main: 'db/main.ts', schema: MigrationsSettings },
  {
    template: 'svccloud/templates/_host-process.tpl',
    main: 'hosting/pods/main.ts',
    schema: ControlPlanesHostSettings,
  },
  { template: 'svccloud-node-agent/templates/agents.yaml', main: 'agents/node/main.ts', schema: NodeAgentSettings },
]

it.each(PROCESSES)('$template sets only what $main reads', async ({ template, main, schema }) => {
  const text = await read(`charts/${template}`)
  const common = text.includes('"svccloud.environment"') ? await read('charts/svccloud/templates/_names.tpl') : ''
  const known = new Set(Object.keys(schema.shape).flatMap((field) => variablesOf(schema, field)))
  const set = matches(text + common, /- name: (SVCCLOUD_[A-Z_]+)/g)
  expect(text).toContain(`args: [${main}]`)
  expect(set.length).toBeGreaterThan(1)
  expect(set.filter((name) => !known.has(name))).toEqual([])
})

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

const VERBS: Readonly<Record<string, readonly string[]>> = {
  get: ['get'],
  list: ['list'],
  watch: ['watch'],
  create: ['create'],
  patch: ['patch'],
  replace: ['update'],
  delete: ['delete'],
  apply: ['create', 'patch'],
}
const CORE: readonly { readonly kind: string; readonly plural: string }[] = [
  { kind: 'Namespace', plural: 'namespaces' },
  { kind: 'Secret', plural: 'secrets' },
  { kind: 'Lease', plural: 'leases' },
  { kind: 'ResourceQuota', plural: 'resourcequotas' },
]
/** Only a process that registers its own webhook writes it; in a cluster the chart does. */
const NOT_IN_A_CLUSTER = new Set(['ValidatingWebhookConfiguration'])

it('lets the API server do to each kind what its sources do', async () => {
  const generated = parse(await read('charts/svccloud/files/apiserver-rights.yaml')) as Rule[]
  const template = (await read('charts/svccloud/templates/access.yaml')).replaceAll(/^ *\{\{-.*$/gm, '')
  // in the whole cluster, in namespaces of accounts, and in those of nodes
  const roles = template
    .split('---\n')
    .filter((text) => /^kind: ClusterRole$/m.test(text) && /-apiserver(-\w+)?$/m.test(text))
  const byHand = roles.map((text) => (parse(text.replaceAll(/: \{\{.*$/gm, ': x')) as { rules: Rule[] }).rules)
  expect(roles).toHaveLength(3)
  const rules = [generated, ...byHand].flat()
  // By the constants that sources name, whose case may be another than the kind's.
  const plurals = new Map([...RESOURCES, ...CORE].map(({ kind, plural }) => [kind.toLowerCase(), plural]))
  const files = (await readdir(join(ROOT, 'apiserver'), { recursive: true })).filter((file) => file.endsWith('.ts'))
  const text = (await Promise.all(files.map((file) => read(`apiserver/${file}`)))).join('\n')
  const targets = KINDS.filter(({ target }) => target !== undefined).map(({ resource }) => resource.kind)
  /** The kinds that come from a variable, where sources are written for several; another variable fails below. */
  const shown = [...matches(text, /\b(?:openObjects\(|: ClaimedNoun<)[^()]*?\bresource: ([A-Z]\w+),/g), ...targets]
  const kindsBy: Readonly<Record<string, readonly string[]>> = {
    resource: shown,
    cache: shown,
    kind: targets,
    carrier: targets,
    type: KINDS.flatMap(({ reads }) => reads.map(({ kind }) => kind)),
    reference: CHANGES.flatMap(({ refers }) => refers.map(({ type }) => type.kind)),
  }
  const kindsOf = (name: string) => (/^[A-Z]/.test(name) ? [name] : (kindsBy[name] ?? [name]))
  const done = [
    ...[...text.matchAll(/\bstore\.(\w+)\(\s*(\w+)/g)].flatMap(([, call = '', name = '']) =>
      (VERBS[call] ?? []).flatMap((verb) => kindsOf(name).map((kind) => ({ kind, verb }))),
    ),
    ...[...text.matchAll(/\bcaches\.of\(\s*(\w+)/g)].flatMap(([, name = '']) =>
      kindsOf(name).flatMap((kind) => [
        { kind, verb: 'list' },
        { kind, verb: 'watch' },
      ]),
    ),
  ].filter(({ kind }) => !NOT_IN_A_CLUSTER.has(kind))
  const lacking = done.filter(
    ({ kind, verb }) =>
      !rules.some(
        ({ resources, verbs }) => resources.includes(plurals.get(kind.toLowerCase()) ?? '') && verbs.includes(verb),
      ),
  )
  expect(Object.values(kindsBy).filter((kinds) => kinds.length === 0)).toEqual([])
  expect(done.length).toBeGreaterThan(20)
  expect([...new Set(lacking.map(({ kind, verb }) => `${verb} ${kind}`))]).toEqual([])
})

it('gives the agents what the embedded Kubernetes API gives them', async () => {
  const role = await read('charts/svccloud-node-agent/files/agent-rights.yaml')
  const flat = (rules: readonly { readonly verbs?: readonly string[]; readonly resources?: readonly string[] }[]) =>
    rules.flatMap(({ resources = [], verbs = [] }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    )
  const ownNamespace = 'get namespaces' // a separate rule in a real cluster, since it names one object of the cluster
  expect([...flat(parse(role) as Rule[]), ownNamespace].toSorted()).toEqual(flat(NODE_RULES).toSorted())
})

/** Settings that a cluster gives in another way, or that only one machine has. */
const NOT_OF_CHARTS = new Set([
  'kubeconfig',
  'installCrds',
  'webhookRegister',
  'mailDirectory',
  'identity',
  'endedIdentity',
  'imageCache',
  'loopbackTwins',
  'powerCycle',
  'stopGuests',
  'migrationHost',
  'guestNetworkObstacle',
  'guestNamespace',
  'guestNamespaceHost',
  'objectStorageControlUrl',
  'objectStorageTokenFile',
  'objectStorageEndpoint',
  'objectStorageAuthorityFile',
  'objectStorageZones',
  'objectStorageObstacle',
  'controlPlanesObstacle',
])
it.each(PROCESSES)('the chart of $template can set everything that $main reads', async ({ template, schema }) => {
  const folder = join(ROOT, 'charts', dirname(template))
  const templates = (
    await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')))
  ).join('\n')
  const missing = Object.keys(schema.shape).filter(
    (field) => !NOT_OF_CHARTS.has(field) && !variablesOf(schema, field).some((name) => templates.includes(name)),
  )
  expect(missing).toEqual([])
})

/** Top folders of everything that a file loads, itself included. */
async function foldersLoadedBy(main: string): Promise<Set<string>> {
  const seen = new Set<string>()
  const waiting = [join(ROOT, main)]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    const here = dirname(file)
    waiting.push(
      ...matches(await readFile(file, 'utf8'), /(?:from|import|import\() ?'(\.[^']+)'/g).map((path) =>
        resolve(here, path),
      ),
    )
  }
  return new Set([...seen].map((file) => relative(ROOT, file).split('/')[0] ?? ''))
}

it.each([
  { image: 'control-plane', main: 'apiserver/main.ts' },
  { image: 'control-plane', main: 'controllers/main.ts' },
  { image: 'control-plane', main: 'db/main.ts' },
  { image: 'control-plane', main: 'hosting/pods/main.ts' },
  { image: 'control-plane', main: 'hosting/pods/pod/issuer.ts' },
  { image: 'control-plane', main: 'hosting/pods/pod/reader.ts' },
  { image: 'control-plane', main: 'hosting/pods/pod/receive.ts' },
  { image: 'control-plane', main: 'addons/cloud/main.ts' },
  { image: 'control-plane', main: 'addons/csi/main.ts' },
  { image: 'node-agent', main: 'agents/node/main.ts' },
])('the image $image holds everything that $main loads', async ({ image, main }) => {
  const stages = (await read('Dockerfile')).split(/^FROM /m)
  const stage = (name: string) => stages.find((text) => text.split('\n')[0]?.endsWith(` AS ${name}`)) ?? ''
  const copied = new Set(matches(stage('runtime') + stage(image), /^COPY (\S+) /gm))
  expect([...(await foldersLoadedBy(main))].filter((folder) => !copied.has(folder))).toEqual([])
})

it('builders are handed all that the Dockerfile copies, and nothing else', async () => {
  const copied = matches(await read('Dockerfile'), /^COPY (?!--from)(.+) \S+$/gm).flatMap((paths) => paths.split(' '))
  const handed = matches(await read('.dockerignore'), /^!(.+)$/gm)
  expect(handed.toSorted()).toEqual([...new Set(copied.map((path) => path.split('/')[0] ?? ''))].toSorted())
})

it('images run as an ordinary user', async () => {
  for (const stage of (await read('Dockerfile')).split(/^FROM /m).slice(-2))
    expect(stage).toMatch(/^USER 65532:65532$/m)
})

it('the Dockerfile has no mistakes', async () => {
  expect(validate(await read('Dockerfile')).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual(
    [],
  )
  expect(validate('FROM a\nRUNN b\n')).not.toEqual([])
})
