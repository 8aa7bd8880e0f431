/** kubectl deletes every noun while an operation of it runs: it is not refused for an operation, but for protection and
 *  for uses of the object. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startAdmission } from '../../../../apiserver/kit/admission/start.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { CONTROLLERS } from '../../../../controllers/index.ts'
import { ADMIN } from '../../../../embedded/kubernetes/core/core.ts'
import { type EmbeddedServer, startKubernetesApi } from '../../../../embedded/kubernetes/server/serve.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { API_GROUP, finalizerOf } from '../../../../resources/kit/define.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { makeSamples } from '../../samples.ts'

const TOKEN = 'the-token-of-the-kubernetes-api'
const AT = '2026-01-01T00:00:00Z'
const run = promisify(execFile)
const database = useDatabase()
let folder: string
let server: EmbeddedServer
let cloud: Cloud
let owner: Person
let namespace: string
let kubeconfig: string
let listener: { stop(): Promise<void> } | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-deletions-'))
  const embedded = { folder: join(folder, 'kubernetes'), host: '127.0.0.1', port: 0, webhookToken: TOKEN }
  server = await startKubernetesApi({ ...embedded, clock, random, log })
  cloud = await openCloud(database.db, { core: server.core })
  owner = await cloud.signUp('owner@example.com')
  namespace = accountNamespace(owner.accountId)
  await makeSamples({ cloud, owner })
  listener = await startAdmission({
    store: cloud.admin,
    caches: cloud.caches,
    db: database.db,
    clock,
    random,
    log,
    platformUsers: [ADMIN.name],
    kinds: KINDS,
    host: '127.0.0.1',
    port: 0,
    callers: { token: TOKEN },
    certificateFiles: undefined,
    isRegistering: true,
    configurationName: 'svccloud',
  })
  kubeconfig = join(folder, 'grace.kubeconfig')
  await server.issue({ user: 'grace@example.com', groups: ['system:masters'] }, kubeconfig)
})
afterAll(async () => {
  await listener?.stop()
  await cloud?.close()
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})

const operationKindOf = (plural: string) =>
  CONTROLLERS.find(({ resource }) => resource.plural === plural)?.operationKinds.find(
    (kind) => !kind.endsWith('.delete'),
  )
/** Kinds of accounts that people delete, and that have operations. */
const DELETED = KINDS.filter(
  ({ resource: { plural, scope }, verbs }) =>
    scope === 'Namespaced' && verbs?.includes('delete') === true && operationKindOf(plural) !== undefined,
)

/** What kubectl says of a deletion: empty when it is taken, else the reason of the refusal. */
async function deleted(words: readonly string[]): Promise<string> {
  const all = ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache'), 'delete', '-n', namespace, ...words]
  return run('kubectl', all).then(
    () => '',
    ({ stderr }: { readonly stderr: string }) => /denied the request: (\w+): /.exec(stderr)?.[1] ?? stderr,
  )
}

test.each(DELETED.map((kind) => [kind.resource.kind, kind.resource] as const))('a %s', async (_name, resource) => {
  const [sample] = (await cloud.admin.list(resource, { namespace })).items
  // Node pools have no sample: they are in their cluster.
  if (sample === undefined) return expect(resource.kind).toBe('NodePool')
  const key = { namespace, name: sample.metadata.name }
  const words = [`${resource.plural}.${API_GROUP}`, key.name]
  const kind = operationKindOf(resource.plural)
  const stanza = { id: 'op', kind, requestedAt: AT, deadlineAt: AT, actor: 'user:x', requestId: 'r' }
  // As their controllers take them on.
  await cloud.admin.patch(resource, key, { metadata: { finalizers: [finalizerOf(resource)] } })
  await cloud.admin.patch(resource, key, { spec: { operation: null } })
  const idle = await deleted([...words, '--dry-run=server'])
  expect(idle).not.toContain('operation_in_progress')
  await cloud.admin.patch(resource, key, { spec: { operation: { ...stanza, arguments: { action: 'update' } } } })
  expect(await deleted([...words, '--dry-run=server']), 'while an operation runs').toBe(idle)
  if (idle !== '') return
  expect(await deleted([...words, '--wait=false'])).toBe('')
  const marked = await cloud.admin.get(resource, key)
  expect(marked?.metadata.deletionTimestamp, 'its finalizer keeps it').toBeDefined()
  expect(marked?.spec).toMatchObject({ operation: { id: 'op' } })
})
