/** What the engine of one tenant can reach when nothing before it keeps anything back: nothing of another. Attacks are
 *  made only after its view of the machine was looked at. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstat, readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { isRoot, processId } from '../../../kit/sys/process.ts'
import { type Asked, openTestEngines, type TestTenant } from './cells.ts'

const run = promisify(execFile)
type Cells = Awaited<ReturnType<typeof openTestEngines>>

const statusOf = async (pid: number): Promise<Readonly<Record<string, string>>> =>
  Object.fromEntries(
    (await readFile(`/proc/${pid}/status`, 'utf8')).split('\n').map((line) => line.split(/:\s+/) as [string, string]),
  )
const NAMESPACES = ['mnt', 'net', 'pid', 'ipc', 'uts']
const namespacesOf = (pid: number) => Promise.all(NAMESPACES.map((name) => readlink(`/proc/${pid}/ns/${name}`)))

/** Runs lines of a shell as the engine would. */
async function inside(cells: Cells, { id }: TestTenant, lines: string): Promise<string> {
  const pid = cells.engines.pid(id)
  const uid = cells.places.find(id)?.cell.uid
  if (pid === undefined || uid === undefined) throw new Error('no engine with a user of its own runs')
  const enter = ['-t', String(pid), '--mount', '--net', '--ipc', '--uts', '--pid', '--']
  const rights = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const { stdout } = await run('nsenter', [...enter, 'setpriv', ...rights, '--', 'sh', '-c', lines], { env: {} })
  return stdout.trim()
}

/** Of everything below the folder but what it leaves out: names, owners, sizes, contents. */
async function digestOf(folder: string, leavesOut: string): Promise<string> {
  const hash = createHash('sha256')
  const folders = [folder]
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    if (path === leavesOut) continue
    for (const name of (await readdir(path)).toSorted()) {
      const inner = join(path, name)
      const found = await lstat(inner)
      hash.update(JSON.stringify([inner, found.mode, found.uid]))
      if (found.isDirectory()) folders.push(inner)
      else if (found.isFile()) hash.update(await readFile(inner))
    }
  }
  return hash.digest('hex')
}

test.runIf(isRoot())('an engine has a separate user, root and namespaces, and no right', async () => {
  const cells = await openTestEngines()
  expect(cells.isolation.kind).toBe('uid')
  const [ada, bob] = [await cells.open('ada'), await cells.open('bob')]
  const pids = [ada, bob].map(({ id }) => cells.engines.pid(id) ?? 0)
  const uids = [ada, bob].map(({ id }) => cells.places.find(id)?.cell.uid ?? 0)
  expect(new Set(uids).size).toBe(2)
  expect(Math.min(...uids)).toBeGreaterThan(0x7000_0000)
  for (const [index, pid] of pids.entries()) {
    const status = await statusOf(pid)
    const uid = String(uids[index])
    expect([status['Uid']?.split('\t'), status['Gid']?.split('\t')]).toEqual([
      [uid, uid, uid, uid],
      [uid, uid, uid, uid],
    ])
    const none = '0000000000000000'
    const rights = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Groups'].map(
      (name) => status[name],
    )
    expect(rights.map((right) => right?.trim())).toEqual([none, none, none, none, none, '1', ''])
    const environment = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').map((each) => each.split('=')[0])
    expect(environment.filter((name) => name !== '').toSorted()).toEqual([
      'GOMEMLIMIT',
      'PATH',
      'ROOT_ACCESS_KEY',
      'ROOT_SECRET_KEY',
    ])
  }
  const spaces = await Promise.all([...pids, processId()].map(namespacesOf))
  for (const [index, name] of NAMESPACES.entries())
    expect([name, new Set(spaces.map((each) => each[index])).size]).toEqual([name, 3])

  const own = cells.places.find('ada')
  expect([
    (await lstat(own?.cell.folder ?? '')).mode & 0o777,
    (await lstat(join(cells.folder, 'tenants'))).mode & 0o777,
  ]).toEqual([0o710, 0o710])
  const seen = (await inside(cells, ada, 'ls /')).split('\n')
  expect(seen.filter((name) => !name.startsWith('lib'))).toEqual([
    'data',
    'dev',
    'engine',
    'proc',
    'run',
    'usr',
    'versions',
  ])
  expect(await inside(cells, ada, 'ls -A /data | grep -v "^\\.vgw"')).toBe(ada.bucket)
  // The shell names them before it runs anything.
  const processes = (await inside(cells, ada, 'cat /proc/[0-9]*/comm')).split('\n')
  expect(new Set(processes)).toEqual(new Set(['engine', 'sh']))
  const devices = (await readFile(`/proc/${pids[0]}/net/dev`, 'utf8')).trim().split('\n').slice(2)
  expect(devices.map((line) => line.split(':')[0]?.trim())).toEqual(['lo'])
  const refused = [
    `ls ${cells.folder}`,
    `cat ${join(cells.folder, 'places')}/1.json`,
    'touch /usr/x',
    'touch /x',
    'touch /engine',
    'mknod /data/sda b 8 0',
    `kill -9 ${pids[1]}`,
    'mount -t tmpfs none /data',
    'unshare --net true',
    'cp /usr/bin/true /data/program && /data/program',
  ]
  for (const lines of refused)
    expect(await inside(cells, ada, `(${lines}) > /dev/null 2>&1 && echo done || echo refused`)).toBe('refused')
})

/** What the engine joins into paths without looking. */
function attacksOn(own: TestTenant, other: TestTenant, folder: string): readonly Asked[] {
  const { bucket } = own
  const climbs = [
    `../${other.bucket}/kept`,
    `a/../../${other.bucket}/kept`,
    `..&#47;${other.bucket}/kept`,
    ...Array.from({ length: 9 }, (_none, depth) => `${'../'.repeat(depth + 1)}etc/hostname`),
    ...Array.from({ length: 9 }, (_none, depth) => `${'../'.repeat(depth + 1)}${folder.slice(1)}/tenants`),
    `../../../versions/${other.bucket}`,
    '../.vgwlocks',
    '../../run/users/users.json',
  ]
  const ids = climbs.map((climb) => encodeURIComponent(climb))
  const document = (key: string) => `<Delete><Object><Key>${key}</Key></Object></Delete>`
  const complete =
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>'
  return [
    ...climbs.map((key): Asked => ({ method: 'POST', target: `/${bucket}?delete=`, body: document(key) })),
    ...climbs.map(
      (key): Asked => ({ method: 'POST', target: `/${bucket}?delete=`, body: document(`<![CDATA[${key}]]>`) }),
    ),
    ...ids.flatMap((id): Asked[] => [
      { method: 'DELETE', target: `/${bucket}/key?uploadId=${id}` },
      { method: 'GET', target: `/${bucket}/key?uploadId=${id}` },
      { method: 'PUT', target: `/${bucket}/key?partNumber=1&uploadId=${id}`, body: 'part' },
      { method: 'POST', target: `/${bucket}/key?uploadId=${id}`, body: complete },
      { method: 'DELETE', target: `/${bucket}/key?versionId=${id}` },
      { method: 'PUT', target: `/${bucket}/${id}`, body: 'written' },
      { method: 'DELETE', target: `/${bucket}/${id}` },
    ]),
    ...climbs.map(
      (path): Asked => ({
        method: 'PUT',
        target: `/${bucket}/copy`,
        headers: { 'x-amz-copy-source': `${bucket}/${path}` },
      }),
    ),
    ...climbs.map((path): Asked => ({ method: 'GET', target: `/${bucket}/${path}` })),
  ]
}

test.runIf(isRoot())(
  'an engine that joins what a client says into paths reaches nothing of another',
  async () => {
    const cells = await openTestEngines()
    const [ada, bob] = [await cells.open('ada'), await cells.open('internal.bob')]
    for (const tenant of [ada, bob])
      for (const key of ['kept', 'deep/er/kept'])
        await cells.send(tenant, { method: 'PUT', target: `/${tenant.bucket}/${key}`, body: `of ${tenant.id}` })
    await writeFile(join(cells.folder, 'precious'), 'of the platform')
    // Bob's engine ends: what it is asked later starts it anew, and its sockets are not of the comparison.
    const own = cells.places.find(ada.id)?.cell.folder ?? ''
    const others = cells.places.find(bob.id)?.cell.folder ?? ''
    // Before anything is tried: nothing else of this machine can be written.
    const mounts = (await inside(cells, ada, 'cat /proc/self/mounts')).split('\n').map((line) => line.split(' '))
    const writable = mounts.filter(([, , , options = '']) => options.split(',').includes('rw')).map(([, at]) => at)
    expect(writable.filter((at) => !/^\/(?:data|versions|run|proc|dev\/null|dev\/urandom)$/.test(at ?? ''))).toEqual([])
    expect(await inside(cells, ada, 'id -u')).toBe(String(cells.places.find(ada.id)?.cell.uid))

    const before = await digestOf(cells.folder, own)
    const outside = await Promise.all([readdir('/'), readFile('/etc/hostname')])
    let asked = 0
    for (const attack of attacksOn(ada, bob, cells.folder)) {
      // The engine may fail, and may even end; then the next one is asked.
      const { text } = await cells.send(ada, attack).catch(() => ({ text: '' }))
      expect([attack, text.includes(`of ${bob.id}`)]).toEqual([attack, false])
      asked += 1
    }
    expect(asked).toBeGreaterThan(200)
    expect(await digestOf(cells.folder, own)).toBe(before)
    expect(await Promise.all([readdir('/'), readFile('/etc/hostname')])).toEqual(outside)
    expect(await readFile(join(others, 'data', bob.bucket, 'kept'), 'utf8')).toBe(`of ${bob.id}`)
    expect((await cells.send(bob, { method: 'GET', target: `/${bob.bucket}/kept` })).text).toBe(`of ${bob.id}`)
  },
  120_000,
)

test('a key of one tenant is no key of another, for any bucket it names', async () => {
  const cells = await openTestEngines()
  const [ada, bob] = [await cells.open('ada'), await cells.open('bob')]
  await cells.send(bob, { method: 'PUT', target: `/${bob.bucket}/kept`, body: 'of bob' })
  const answers = [
    await cells.send(ada, { method: 'GET', target: `/${bob.bucket}/kept` }),
    await cells.send({ ...ada, id: bob.id }, { method: 'GET', target: `/${bob.bucket}/kept` }),
  ]
  expect(answers.map(({ status, text }) => [status, /<Code>(\w+)</.exec(text)?.[1]])).toEqual([
    [404, 'NoSuchBucket'],
    [403, 'InvalidAccessKeyId'],
  ])
})
