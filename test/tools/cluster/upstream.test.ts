/** Programs as files that their projects released: a real server is the mirror. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { arch, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { pinReleased, readDigests, releasedFile, takeReleased, WrongDigest } from '../../../tools/cluster/upstream.ts'

const run = promisify(execFile)
const KUBELET = releasedFile({ name: 'kubelet', version: 'v1.36.3' }, 'kubernetes', arch())
const ETCD = releasedFile({ name: 'etcd', version: 'v3.6.9' }, 'etcd', arch())

let folder: string
let mirror: string
let server: Server
const asked: string[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'upstream-'))
  asked.length = 0
  server = createServer((request, response) => {
    asked.push(request.url ?? '')
    readFile(join(folder, 'mirror', request.url ?? '')).then(
      (content) => response.end(content),
      () => response.writeHead(404).end('no such file'),
    )
  })
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve))
  mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await rm(folder, { recursive: true })
})

const digestOf = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
const program = () => join(folder, 'tools/v1/program')

async function offer(path: string, content: string | Buffer): Promise<string> {
  const file = join(folder, 'mirror', path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
  return digestOf(content)
}
async function offerEtcd(): Promise<string> {
  const inside = join(folder, dirname(ETCD.member ?? ''))
  await mkdir(inside)
  for (const name of ['etcd', 'etcdutl']) await writeFile(join(inside, name), `released ${name}`)
  await run('tar', ['-czf', 'etcd.tar.gz', dirname(ETCD.member ?? '')], { cwd: folder })
  return offer(ETCD.path, await readFile(join(folder, 'etcd.tar.gz')))
}

test('mirrors are laid out as the projects lay out their releases', () => {
  expect(releasedFile({ name: 'kubelet', version: 'v1.36.3' }, 'kubernetes', 'x64')).toEqual({
    path: 'v1.36.3/bin/linux/amd64/kubelet',
  })
  expect(releasedFile({ name: 'etcdutl', version: 'v3.6.9' }, 'etcd', 'arm64')).toEqual({
    path: 'etcd/v3.6.9/etcd-v3.6.9-linux-arm64.tar.gz',
    member: 'etcd-v3.6.9-linux-arm64/etcdutl',
  })
})

test('the file that is pinned is taken, and can be run', async () => {
  const digests = { [KUBELET.path]: await offer(KUBELET.path, 'released kubelet') }
  expect(await takeReleased(KUBELET, { mirror, digests, path: program() })).toBeUndefined()
  expect(await readFile(program(), 'utf8')).toBe('released kubelet')
  expect((await stat(program())).mode & 0o777).toBe(0o755)
})

test('a program is taken out of the archive that it is released in', async () => {
  const digests = { [ETCD.path]: await offerEtcd() }
  expect(await takeReleased(ETCD, { mirror: `${mirror}/`, digests, path: program() })).toBeUndefined()
  expect(await readFile(program(), 'utf8')).toBe('released etcd')
  expect(await readdir(dirname(program()))).toEqual(['program'])
})

test('another file is refused, and nothing of it stays', async () => {
  await offer(KUBELET.path, 'released kubelet, and a little more')
  const digests = { [KUBELET.path]: digestOf('released kubelet') }
  const taking = takeReleased(KUBELET, { mirror, digests, path: program() })
  await expect(taking).rejects.toBeInstanceOf(WrongDigest)
  await expect(taking).rejects.toThrow(`${digestOf('released kubelet')} is pinned`)
  expect(await readdir(dirname(program()))).toEqual([])
})

test('what has no digest, or is not there, is not taken', async () => {
  await offer(KUBELET.path, 'released kubelet')
  expect(await takeReleased(KUBELET, { mirror, digests: {}, path: program() })).toBe(
    `${KUBELET.path} has no pinned digest`,
  )
  expect(asked).toEqual([])
  const digests = { [ETCD.path]: digestOf('x') }
  expect(await takeReleased(ETCD, { mirror, digests, path: program() })).toBe(`${mirror} does not have ${ETCD.path}`)
})

test('digests of what a mirror has are recorded once', async () => {
  const digestsFile = join(folder, 'digests.json')
  await writeFile(digestsFile, '{}')
  const options = { mirror, digestsFile, work: folder }
  const digest = await offer(KUBELET.path, 'released kubelet')
  expect(await pinReleased([KUBELET, ETCD], options)).toEqual([KUBELET.path])
  expect(await readDigests(digestsFile)).toEqual({ [KUBELET.path]: digest })
  expect(await pinReleased([KUBELET], options)).toEqual([])
  await offer(KUBELET.path, 'another kubelet')
  const etcd = await offerEtcd()
  await expect(pinReleased([ETCD, KUBELET], options)).rejects.toBeInstanceOf(WrongDigest)
  expect(await readDigests(digestsFile)).toEqual({ [KUBELET.path]: digest })
  await offer(KUBELET.path, 'released kubelet')
  await pinReleased([ETCD, KUBELET], options)
  expect(await readDigests(digestsFile)).toEqual({ [KUBELET.path]: digest, [ETCD.path]: etcd })
})

test('nothing is pinned from a mirror that somebody on the way can answer for', async () => {
  const pinning = pinReleased([KUBELET], { mirror: 'http://mirror.example', work: folder })
  await expect(pinning).rejects.toThrow('over https only')
})

test('the table of digests can be read', async () => {
  expect(Object.keys(await readDigests())).toContain(KUBELET.path)
})

interface Ended {
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** `npm run build:kubernetes` where there is no Go. */
const build = (...words: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const program = join(import.meta.dirname, '../../../tools/cluster/build-kubernetes.ts')
    const env = { SVCCLOUD_TOOLS: join(folder, 'tools'), PATH: join(folder, 'no-go') }
    const child = execFile(nodeBinary(), [program, ...words], { env }, (_error, output, errors) =>
      resolve({ code: child.exitCode ?? -1, output, errors }),
    )
  })

test('the build goes no further with a mirror whose files are others', async () => {
  await offer(ETCD.path, 'no etcd')
  const { code, output, errors } = await build('--from', mirror)
  expect([code, errors]).toEqual([1, expect.stringContaining(`${ETCD.path} is not the released file`)])
  expect(output).not.toContain('kube-apiserver')
})

test('the build makes what cannot be taken from its source, and says why', async () => {
  for (const name of ['etcd', 'etcdutl']) {
    await mkdir(join(folder, 'tools/v3.6.9'), { recursive: true })
    await writeFile(join(folder, 'tools/v3.6.9', name), '')
  }
  const { code, output, errors } = await build('--from', mirror)
  expect(output).toContain(
    `kube-apiserver: ${dirname(KUBELET.path)}/kube-apiserver has no pinned digest; it is built from its source`,
  )
  expect([code, errors]).toEqual([1, expect.stringContaining('install Go')])
})

test('words that the build does not know are answered with those that it does', async () => {
  expect(await build('--minor', '1.2')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('--minor 1.35 | 1.36'),
  })
})
