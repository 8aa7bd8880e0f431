/** Programs of a control plane run as a user that nothing else runs as, and that may do nothing besides. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isRoot } from '../../../kit/sys/process.ts'
import { adminOf, type Hosted, newDesired, openHosted } from './hosted.ts'

const run = promisify(execFile)
const PROGRAMS = ['etcd-0', 'kube-apiserver-0', 'kube-controller-manager', 'kube-scheduler', 'konnectivity-server']

let hosted: Hosted
const planes = [newDesired(), newDesired()] as const
beforeAll(async () => {
  hosted = await openHosted()
  for (const desired of planes) await hosted.host.ensure(desired)
  for (const { id } of planes) await adminOf(hosted, id)
})
afterAll(() => hosted.end())

const statusOf = async (id: string, program: string): Promise<Readonly<Record<string, string>>> => {
  const text = await readFile(`/proc/${hosted.host.pid(id, program)}/status`, 'utf8')
  return Object.fromEntries(text.split('\n').map((line) => line.split(/:\s+/) as [string, string]))
}
const usersOf = async (id: string) => {
  const statuses = await Promise.all(PROGRAMS.map((program) => statusOf(id, program)))
  return [...new Set(statuses.flatMap(({ Uid = '', Gid = '' }) => [...Uid.split('\t'), ...Gid.split('\t')]))]
}

test('each has its own, without rights', async () => {
  if (!isRoot()) return
  const [one = [], other = []] = await Promise.all(planes.map(({ id }) => usersOf(id)))
  expect([one.length, other.length]).toEqual([1, 1])
  expect(one).not.toEqual(other)
  expect(one).not.toContain('0')
  for (const { id } of planes)
    for (const program of PROGRAMS) {
      const status = await statusOf(id, program)
      expect(status, program).toMatchObject({ NoNewPrivs: '1', Groups: '' })
      for (const set of ['CapEff', 'CapPrm', 'CapBnd', 'CapInh', 'CapAmb'])
        expect(status[set], `${program} ${set}`).toMatch(/^0+$/)
      const limits = await readFile(`/proc/${hosted.host.pid(id, program)}/limits`, 'utf8')
      expect(limits).toMatch(/^Max processes\s+2048\s+2048/m)
      expect(limits).toMatch(/^Max data size\s+6442450944\s+6442450944/m)
    }
})

test("it reads none of another's, and changes nothing that the host reads", async () => {
  if (!isRoot()) return
  const [user = ''] = await usersOf(planes[0].id)
  const as = (script: string, id: string) =>
    run('setpriv', [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', 'sh', '-c', script], {
      cwd: join(hosted.folder, id),
    })
  await as('cat ca.key > /dev/null', planes[0].id) // which it signs with
  await expect(as('cat record.json', planes[0].id)).rejects.toThrow()
  await expect(as('echo x > new', planes[0].id)).rejects.toThrow()
  await expect(as('echo x >> ca.crt', planes[0].id)).rejects.toThrow()
  await expect(as('cat ca.key', planes[1].id)).rejects.toThrow()
})

test('it keeps its user when the host starts again', async () => {
  if (!isRoot()) return
  const before = await Promise.all(planes.map(({ id }) => usersOf(id)))
  await hosted.reopen()
  for (const { id } of planes) await adminOf(hosted, id)
  expect(await Promise.all(planes.map(({ id }) => usersOf(id)))).toEqual(before)
})
