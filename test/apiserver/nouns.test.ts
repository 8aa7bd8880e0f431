/** The registrations of nouns: no kind is left out, and what is generated from them is committed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { NAMESPACE_RULES, NAMESPACES_CONDITION, webhookRules } from '../../apiserver/kit/admission/webhook.ts'
import { KINDS, NOUNS } from '../../apiserver/nouns.ts'
import { stepsOf } from '../../domain/operations.ts'
import { OPERATION_TARGETS } from '../../resources/operation/index.ts'
import { accountNamespace, RESOURCES, ROUTES } from '../../resources/index.ts'
import { snakeCase } from '../../resources/kit/view.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { CHART_FOLDER, chartFiles } from '../../tools/generate.ts'

const ROOT = join(import.meta.dirname, '../..')

test('every kind belongs to exactly one noun', () => {
  expect(KINDS.map(({ resource }) => resource.plural).toSorted()).toEqual(
    RESOURCES.map(({ plural }) => plural).toSorted(),
  )
})

test('nouns have distinct names', () => {
  const names = NOUNS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

test.each(RESOURCES.map((resource) => [resource.plural, resource]))(
  'the webhook is called for %s and its status, or it says why not',
  (plural, { scope }) => {
    const called = webhookRules(KINDS).find((rule) => rule.scope === scope)?.resources ?? []
    const kind = KINDS.find(({ resource }) => resource.plural === plural)
    const isCalled = called.includes(plural) && called.includes(`${plural}/status`)
    expect(isCalled ? kind?.exemptBecause : (kind?.exemptBecause ?? '').length > 10).toBe(isCalled ? undefined : true)
  },
)

test.each(
  NOUNS.flatMap(({ name, kinds }) =>
    kinds
      .filter(({ exemptBecause }) => exemptBecause === undefined)
      .map(({ resource }) => [resource.kind, name] as const),
  ),
)('a refused write of %s is audited by the name of its noun, %s', (kind, name) => {
  expect(snakeCase(kind)).toBe(name)
})

test('what customers may write with kubectl, the webhook validates', () => {
  const writable = RESOURCES.filter(({ customers }) => customers === 'write').map(({ plural }) => plural)
  const validated = KINDS.filter(({ exemptBecause }) => exemptBecause === undefined)
  expect(validated.map(({ resource }) => resource.plural)).toEqual(expect.arrayContaining(writable))
})

/** Kinds that show addresses of others: those are unique already. */
const ADDRESSES_OF_OTHERS: Readonly<Record<string, string>> = {
  Edge: 'of its load balancer and its machines, which are servers',
  NodePool: 'of its nodes, which are servers',
  DevCluster: 'of its machine, which is a server',
  KubernetesHost: 'of a machine that operators run',
}
const ADDRESS = /"(macAddress|address|publicIpv[46]|privateIpv[46]|ipv[46]Address)":\{/

test.each(
  KINDS.filter(({ exemptBecause }) => exemptBecause === undefined).flatMap(({ resource: { kind }, usesOf }) => {
    const status = RESOURCES.find((resource) => resource.kind === kind)?.status
    const hasAddress = status !== undefined && ADDRESS.test(JSON.stringify(z.toJSONSchema(status)))
    return hasAddress ? [[kind, usesOf !== undefined] as const] : []
  }),
)('%s has addresses: it says that they are its own, or whose', (kind, isOwn) =>
  expect(isOwn).toBe(ADDRESSES_OF_OTHERS[kind] === undefined),
)

/** The noun of the kind; the backup of a storage is done to the backup that it makes, its policy to a zone. */
const OTHER_TARGETS: Readonly<Record<string, string>> = {
  'storage.backup': 'backup',
  'storage.rebalance_policy': 'zone',
}
const targetOf = (kind: string): string => OTHER_TARGETS[kind] ?? kind.split('.')[0] ?? ''

test('a noun whose routes start operations can be their target', () => {
  const started = new Set(ROUTES.flatMap(({ starts }) => starts.map(targetOf)))
  const targets = KINDS.flatMap(({ target }) => target ?? [])
  // The platform's own control plane is no object: its changes are always refused.
  expect([...new Set(targets), 'control_plane'].toSorted()).toEqual([...started].toSorted())
  expect(OPERATION_TARGETS).toEqual(expect.arrayContaining(targets))
})

test('what routes start has steps in the table of operations, unless it is done in one', () => {
  const started = new Set(ROUTES.flatMap(({ starts }) => starts))
  expect([...started].filter((kind) => isDeepStrictEqual(stepsOf(kind), ['done'])).toSorted()).toEqual([
    'control_plane.expand',
    'control_plane.shrink',
    'server.firewall',
    'server.metadata',
    'server.settle_migration',
  ])
})

test.each([...chartFiles()])('%s is what the registrations make', async (file, text) => {
  expect(await readFile(join(ROOT, CHART_FOLDER, file), 'utf8')).toBe(text)
})

test.each([
  ['svccloud/templates/webhook.yaml', '.Files.Get "files/webhook-rules.yaml"'],
  ['svccloud/templates/access.yaml', '.Files.Get "files/apiserver-rights.yaml"'],
  ['svccloud/templates/access.yaml', '.Files.Get "files/controllers-rights.yaml"'],
  ['svccloud/templates/access.yaml', '.Files.Get "files/controllers-namespace-rights.yaml"'],
  ['svccloud/templates/access.yaml', '.Files.Get "files/controllers-system-rights.yaml"'],
  ['svccloud-node-agent/templates/access.yaml', '.Files.Get "files/agent-rights.yaml"'],
])('%s holds %s', async (template, reference) => {
  expect(await readFile(join(ROOT, CHART_FOLDER, template), 'utf8')).toContain(reference)
})

test('the webhook keeps namespaces of accounts and nodes, in the chart as in the embedded Kubernetes', async () => {
  const chart = await readFile(join(ROOT, 'charts/svccloud/templates/webhook.yaml'), 'utf8')
  expect(chart).toContain(`expression: '${NAMESPACES_CONDITION}'`)
  for (const { resources, operations } of NAMESPACE_RULES) {
    expect(chart).toContain(`resources: [${resources.join()}]`)
    expect(chart).toContain(`operations: [${operations.join()}]`)
  }
  expect(accountNamespace('').concat(' ', nodeNamespace(''))).toBe('acct- node-')
})
