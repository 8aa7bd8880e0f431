import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Core, ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { nodeUser } from '../../embedded/kubernetes/server/credentials.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { ACCOUNT_ROLES } from '../../resources/account-roles.ts'
import { ROLE_FOLDER, roleFiles } from '../../tools/generate.ts'
import { tryAccountRoles, tryConfinement } from './access-rules.ts'

let core: Core
let admin: Store
const storeOf = (name: string, groups: readonly string[]) =>
  openClient({
    transport: (request) => core.handle(request, { name, groups: [...groups, 'system:authenticated'] }),
    fieldManager: 'tests',
    clock: systemClock,
    random: systemRandom,
  })

beforeAll(async () => {
  core = await openCore({ clock: systemClock, random: systemRandom, log: silentLog, storage: memoryStorage() })
  admin = storeOf(ADMIN.name, ADMIN.groups)
  await installCrds(admin, crds(), systemClock)
})
afterAll(() => core.close())

test('the committed roles are what the role table says', async () => {
  const files = roleFiles()
  expect((await readdir(ROLE_FOLDER)).sort()).toEqual([...files.keys()].sort())
  for (const [name, text] of files)
    expect(await readFile(join(ROLE_FOLDER, name), 'utf8'), `${name}: run npm run generate`).toBe(text)
})

test('roles that may the same in the API may the same in Kubernetes, and viewers only look', () => {
  const rulesOf = (name: string) => ACCOUNT_ROLES.find(({ metadata }) => metadata.name === `svccloud:${name}`)?.rules
  expect(rulesOf('owner')).toEqual(rulesOf('member'))
  expect(rulesOf('admin')).toEqual(rulesOf('member'))
  expect(rulesOf('viewer')).toEqual([
    {
      apiGroups: ['svccloud.dev'],
      resources: expect.arrayContaining(['servers', 'storages', 'operations']),
      verbs: ['get', 'list', 'watch'],
    },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['get', 'list', 'watch'] },
  ])
})

test('the embedded API server holds people to their role and their account', () =>
  tryAccountRoles(admin, (user) => storeOf(user, [])))

test('the embedded API server holds agents to their node', async () => {
  for (const name of ['node-n1', 'node-n2']) await admin.create(Namespace, { metadata: { name }, spec: {} })
  await tryConfinement(admin, (node) => {
    const { user, groups } = nodeUser(node)
    return storeOf(user, groups)
  })
})
