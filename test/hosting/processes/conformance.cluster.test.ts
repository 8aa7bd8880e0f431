/** Conformance tests of the Kubernetes project that need no node, against a hosted control plane of the product, with
 *  the rights of an administrator of a cluster. `conformance.txt` beside this names them, and says why others are left
 *  out. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { isBuilt } from '../../../tools/cluster/build.ts'
import { type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'
import { readNames, runUpstreamTests, writeKubeconfig } from './upstream-tests.ts'

const RUN_MILLISECONDS = 360_000
/** Two cores have enough with so many: each waits most of its time. */
const PROGRAMS_AT_ONCE = 4
const areBuilt = await Promise.all((['kubectl', 'e2e.test'] as const).map(isBuilt))
const isPossible = areBuilt.every(Boolean) && (await findKubernetes()) !== undefined

let folder: string
let hosted: Hosted | undefined
let kubeconfigFile: string

beforeAll(async () => {
  if (!isPossible) return
  folder = await mkdtemp(join(tmpdir(), 'svccloud-conformance-'))
  hosted = await openHosted()
  const desired = newDesired()
  await hosted.host.ensure(desired)
  const state = await untilState(hosted, desired.id, isWhole)
  const { token } = await hosted.host.userToken(desired.id, 'admin', 3_600)
  kubeconfigFile = await writeKubeconfig(join(folder, 'kubeconfig'), state, token)
})

afterAll(async () => {
  await hosted?.end()
  if (isPossible) await rm(folder, { recursive: true, force: true })
})

test(
  'every test of the list runs and passes',
  async ({ skip }) => {
    if (!isPossible) skip('not built (with Go: npm run build:kubernetes; node tools/cluster/build.ts kubectl e2e.test)')
    const names = await readNames(join(import.meta.dirname, 'conformance.txt'))
    expect(new Set(names).size).toBe(names.length)
    const found = await runUpstreamTests({
      kubeconfigFile,
      folder,
      names,
      programs: PROGRAMS_AT_ONCE,
      timeoutMilliseconds: RUN_MILLISECONDS,
      // There are none, and nobody waits for them.
      flags: ['--allowed-not-ready-nodes=-1', '--num-nodes=0'],
    })
    expect(found).toEqual(Object.fromEntries(names.map((name) => [name, 'passed'])))
  },
  RUN_MILLISECONDS + 60_000,
)
