/** The importer against a real server, a real name server and real images, most of them hostile. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  importImage,
  type ImportLimits,
  removeAbandonedImports,
} from '../../../../../agents/node/images/import/index.ts'
import { NoRoom } from '../../../../../agents/node/images/room.ts'
import { NOBODY, runSandboxed } from '../../../../../agents/node/images/import/sandbox.ts'
import { Turns } from '../../../../../agents/node/turns.ts'
import { defined } from '../../../../../domain/defined.ts'
import { systemClock } from '../../../../../kit/sys/clock.ts'
import { freeBytes } from '../../../../../kit/sys/disk-space.ts'
import { isRoot, nodeBinary } from '../../../../../kit/sys/process.ts'
import { until } from '../../../../eventually.ts'
import { type HostileServer, INTERNAL, PUBLIC, startHostileServer } from './hostile-server.ts'

const MEBIBYTE = 1024 ** 2
const LIMITS: ImportLimits = {
  maximumBytes: 4 * MEBIBYTE,
  maximumVirtualBytes: 64 * MEBIBYTE,
  fetchMilliseconds: 170_000,
  convertMilliseconds: 170_000,
  idleMilliseconds: 30_000,
}
const SECRET = 'not-for-the-sandbox'

let server: HostileServer
let answer: RequestListener
let paths: string[] = []
let folder: string
let raw: Buffer

beforeAll(async () => {
  server = await startHostileServer((request, response) => {
    paths.push(request.url ?? '')
    answer(request, response)
  })
  raw = Buffer.alloc(2 * MEBIBYTE)
  for (let at = 0; at < raw.length; at += 4096) raw.writeUInt32BE(at, at)
})
afterAll(() => server.close())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-import-'))
  paths = []
  server.answerNames(PUBLIC)
  answer = (_request, response) => void response.end(raw)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const urlOf = (path = '/disk.img', host = 'images.test') => `https://${host}:${server.port}${path}`
const run = (
  source: { url?: string; checksum?: string } = {},
  options: {
    limits?: Partial<ImportLimits>
    signal?: AbortSignal
    name?: string
    turns?: Turns
    reserveBytes?: number
  } = {},
) =>
  importImage(
    { url: urlOf(), checksum: sha256(raw), ...source },
    {
      folder: join(folder, 'imports'),
      name: options.name ?? 'one',
      limits: { ...LIMITS, ...options.limits },
      clock: systemClock,
      turns: options.turns ?? new Turns(),
      ...defined({ reserveBytes: options.reserveBytes }),
      signal: options.signal,
      trust: server.trust,
    },
  )
const serve = (bytes: Buffer) => {
  answer = (_request, response) => void response.end(bytes)
  return { checksum: sha256(bytes) }
}
const redirect =
  (...places: readonly string[]): RequestListener =>
  (_request, response) => {
    const place = places[paths.length - 1]
    if (place === undefined) response.end(raw)
    else response.writeHead(302, { location: place }).end()
  }
/** An image of qemu-img's own making. */
async function qemuImage(...input: readonly string[]): Promise<Buffer> {
  const path = join(folder, 'made.qcow2')
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...input.slice(0, -1), path, input.at(-1) ?? ''])
  return readFile(path)
}
const contentOf = async (path: string) => {
  const out = join(folder, 'out.raw')
  execFileSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', path, out])
  return readFile(out)
}
const isClean = async () => expect(await readdir(join(folder, 'imports'))).toEqual([])

describe('an image is imported', () => {
  test('raw', async () => {
    const disk = await run()
    expect(disk).toMatchObject({ format: 'raw', virtualBytes: raw.length })
    expect((await contentOf(disk.path)).equals(raw)).toBe(true)
    expect(await readdir(join(folder, 'imports', 'import-one'))).toEqual(['disk.qcow2'])
  })

  test('qcow2, compressed, with the checksum in capitals', async () => {
    await writeFile(join(folder, 'raw'), raw)
    const path = join(folder, 'compressed.qcow2')
    execFileSync('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', join(folder, 'raw'), path])
    const { checksum } = serve(await readFile(path))
    const disk = await run({ checksum: checksum.toUpperCase() })
    expect(disk).toMatchObject({ format: 'qcow2', virtualBytes: raw.length })
    expect((await contentOf(disk.path)).equals(raw)).toBe(true)
  })

  test('behind redirects', async () => {
    answer = redirect('/there', urlOf('/last', 'other.test'))
    await run()
    expect(paths).toEqual(['/disk.img', '/there', '/last'])
  })

  test('again after its agent was killed, from the beginning', async () => {
    const left = join(folder, 'imports', 'import-one')
    await mkdir(left, { recursive: true })
    await writeFile(join(left, 'fetched'), 'half')
    const disk = await run()
    expect((await contentOf(disk.path)).equals(raw)).toBe(true)
    await removeAbandonedImports(join(folder, 'imports'))
    await isClean()
  })
})

describe('nothing is fetched but from the Internet', () => {
  test.each([
    ['http', () => `http://images.test:${server.port}/`, 'only https'],
    ['a file', () => 'file:///etc/passwd', 'only https'],
    ['credentials', () => `https://user:pass@images.test:${server.port}/`, 'credentials'],
    ['no URL', () => 'https://', 'no URL'],
    ['an internal address', () => urlOf('/', INTERNAL), 'not a public address'],
    ['one in another notation', () => urlOf('/', '0x7f000002'), 'not a public address'],
    ['mapped', () => urlOf('/', '[::ffff:127.0.0.2]'), 'not a public address'],
    ['of IPv6', () => urlOf('/', '[::1]'), 'not a public address'],
    ['a metadata service', () => 'https://169.254.169.254/latest/', 'not a public address'],
  ])('%s is refused', async (_name, url, message) => {
    await expect(run({ url: url() })).rejects.toThrow(message)
    expect([paths, server.internalConnections()]).toEqual([[], 0])
    await isClean()
  })

  test('a name of an internal address is refused', async () => {
    server.answerNames(INTERNAL)
    await expect(run()).rejects.toThrow('images.test is not a public address')
    expect(server.internalConnections()).toBe(0)
  })

  test('a name of a public and an internal address is refused', async () => {
    server.answerNames(`${PUBLIC} ${INTERNAL}`)
    await expect(run()).rejects.toThrow('images.test is not a public address')
    expect(paths).toEqual([])
  })

  test('a name that becomes internal right after the check redirects nowhere', async () => {
    server.answerNames(PUBLIC, INTERNAL)
    await run()
    expect([paths, server.internalConnections()]).toEqual([['/disk.img'], 0])
  })

  test('a name that is internal at the redirect is refused there', async () => {
    server.answerNames(PUBLIC, INTERNAL)
    answer = redirect('/there')
    await expect(run()).rejects.toThrow('not a public address')
    expect([paths, server.internalConnections()]).toEqual([['/disk.img'], 0])
  })

  test.each([
    ['an internal address', () => urlOf('/', INTERNAL), 'not a public address'],
    ['plain http', () => `http://images.test:${server.port}/`, 'only https'],
    ['a file', () => 'file:///etc/passwd', 'only https'],
    ['nowhere', () => 'https://[', 'no URL'],
  ])('a redirect to %s is refused', async (_name, to, message) => {
    answer = redirect(to())
    await expect(run()).rejects.toThrow(message)
    expect([paths, server.internalConnections()]).toEqual([['/disk.img'], 0])
  })

  test('redirects in a circle end', async () => {
    answer = (_request, response) => void response.writeHead(302, { location: '/' }).end()
    await expect(run()).rejects.toThrow('more than 5 redirects')
    expect(paths).toHaveLength(6)
  })

  test('a certificate of an unknown authority is refused', async () => {
    const imported = importImage(
      { url: urlOf(), checksum: sha256(raw) },
      {
        folder,
        name: 'one',
        limits: LIMITS,
        clock: systemClock,
        turns: new Turns(),
        trust: { ...server.trust, authorities: [] },
      },
    )
    await expect(imported).rejects.toThrow('could not be fetched')
    expect(paths).toEqual([])
  })
})

describe('a body is refused', () => {
  test('that says it is too large', async () => {
    answer = (_request, response) => void response.writeHead(200, { 'content-length': 5 * MEBIBYTE }).flushHeaders()
    await expect(run()).rejects.toThrow('larger than')
    await isClean()
  })

  test('that has no end', async () => {
    answer = (_request, response) => {
      const more = () => void response.write(raw, (error) => error == null && more())
      more()
    }
    await expect(run()).rejects.toThrow('larger than')
    await isClean()
  })

  test('that stalls', async () => {
    answer = (_request, response) => void response.write('begin')
    await expect(run({}, { limits: { idleMilliseconds: 500 } })).rejects.toThrow('sends nothing')
    await isClean()
  })

  test('that drips for ever', async () => {
    answer = (_request, response) => {
      const timer = setInterval(() => response.write('x'), 100)
      response.once('close', () => clearInterval(timer))
    }
    await expect(run({}, { limits: { fetchMilliseconds: 3000 } })).rejects.toThrow('was ended by SIGKILL')
    await isClean()
  })

  test('that ends before its end', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': raw.length })
      response.write(raw.subarray(0, 1000), () => response.destroy())
    }
    await expect(run()).rejects.toThrow('could not be fetched')
  })

  test('that is encoded, so that a small one cannot become a large one', async () => {
    answer = (_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(raw)
    await expect(run()).rejects.toThrow('as gzip')
  })

  test('that is none', async () => {
    answer = (_request, response) => void response.writeHead(404).end()
    await expect(run()).rejects.toThrow('answered 404')
  })

  test('of another checksum, before anything reads what is in it', async () => {
    const hostile = await qemuImage('-u', '-b', '/etc/passwd', '-F', 'raw', '1M')
    serve(hostile)
    await expect(run({ checksum: sha256(raw) })).rejects.toThrow(`is ${sha256(hostile)}, not ${sha256(raw)}`)
    await isClean()
  })
})

describe('an image is refused', () => {
  test('with a backing file', async () => {
    const source = serve(await qemuImage('-u', '-b', '/etc/passwd', '-F', 'raw', '1M'))
    await expect(run(source)).rejects.toThrow('has a backing file')
    await isClean()
  })

  test('with its data in another file', async () => {
    const source = serve(await qemuImage('-o', `data_file=${join(folder, 'data')},data_file_raw=on`, '1M'))
    await expect(run(source)).rejects.toThrow('in another file')
  })

  test('encrypted', async () => {
    const secret = ['--object', 'secret,id=key,data=12345678', '-o', 'encrypt.format=aes,encrypt.key-secret=key']
    const source = serve(await qemuImage(...secret, '1M'))
    await expect(run(source)).rejects.toThrow('encrypted')
  })

  test('with a disk larger than allowed in a small file', async () => {
    const source = serve(await qemuImage('16T'))
    await expect(run(source)).rejects.toThrow('are allowed')
    await isClean()
  })

  test('with tables that are larger than any', async () => {
    const image = await qemuImage('1M')
    image.writeUInt32BE(0x7fff_ffff, 36)
    await expect(run(serve(image))).rejects.toThrow('qemu-img failed')
    await isClean()
  })

  test('cut off, though its tables are whole', async () => {
    await writeFile(join(folder, 'raw'), raw)
    const path = join(folder, 'whole.qcow2')
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', join(folder, 'raw'), path])
    const whole = await readFile(path)
    await expect(run(serve(whole.subarray(0, whole.length - MEBIBYTE)))).rejects.toThrow('damaged or incomplete')
    await isClean()
  })

  test('that becomes many times its file, though nothing in it is wrong', async () => {
    const bomb = bombOf(512 * MEBIBYTE)
    const path = join(folder, 'bomb.qcow2')
    await writeFile(path, bomb)
    execFileSync('qemu-img', ['check', '-q', '-f', 'qcow2', path])
    const limits = { maximumVirtualBytes: 1024 * MEBIBYTE }
    await expect(run(serve(bomb), { limits })).rejects.toThrow('more than 32 times')
    await isClean()
  })

  test('in an archive of disks, which is as long as a raw disk', async () => {
    await writeFile(join(folder, 'disk.vmdk'), raw)
    const path = join(folder, 'machine.ova')
    execFileSync('tar', ['--format=ustar', '-C', folder, '-cf', path, 'disk.vmdk'])
    await expect(run(serve(await readFile(path)))).rejects.toThrow('tar archive')
  })

  test('of another format', async () => {
    const path = join(folder, 'other.vmdk')
    execFileSync('qemu-img', ['create', '-q', '-f', 'vmdk', path, '1M'])
    await expect(run(serve(await readFile(path)))).rejects.toThrow('VMDK')
  })
})

describe('a host', () => {
  test('without room but for its reserve imports nothing', async () => {
    await expect(run({}, { reserveBytes: (await freeBytes(folder)) * 2 })).rejects.toThrow(NoRoom)
    expect(paths).toEqual([])
    await isClean()
  })

  test('whose room ends while something is fetched ends that', async () => {
    let free: string | undefined
    answer = (_request, response) => {
      response.write('begin')
      free = join(folder, 'filler')
      execFileSync('fallocate', ['-l', '1G', free])
    }
    const reserveBytes = (await freeBytes(folder)) - 512 * MEBIBYTE
    await expect(run({}, { reserveBytes })).rejects.toThrow(NoRoom)
    expect(free).toBeDefined()
    await isClean()
  })

  test('converts one image at a time', async () => {
    const turns = new Turns()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const before = turns.run(() => held)
    const stop = new AbortController()
    const [first, aborted] = [run({}, { turns }), run({}, { turns, name: 'other', signal: stop.signal })]
    aborted.catch(() => {})
    const files = async () => (await readdir(join(folder, 'imports'), { recursive: true })).toSorted()
    const fetched = ['import-one', 'import-one/fetched', 'import-other', 'import-other/fetched']
    await until('both to be fetched', files, (names) => names.join() === fetched.join())
    stop.abort(new Error('deleted meanwhile'))
    await expect(aborted).rejects.toThrow('deleted meanwhile')
    expect(await files()).toEqual(['import-one', 'import-one/fetched'])
    release()
    await before
    await expect(first).resolves.toMatchObject({ virtualBytes: raw.length })
  })
})

/** A whole image in which every cluster of the disk is the same one of the file. */
function bombOf(virtualBytes: number): Buffer {
  const cluster = 65_536
  const count = virtualBytes / cluster
  const image = Buffer.alloc(6 * cluster)
  const [refcountTable, refcounts, first, second, data] = [1, 2, 3, 4, 5].map((at) => BigInt(at * cluster)) as [
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
  ]
  image.write('QFI\xfb', 'latin1')
  image.writeUInt32BE(3, 4)
  image.writeUInt32BE(16, 20)
  image.writeBigUInt64BE(BigInt(virtualBytes), 24)
  image.writeUInt32BE(1, 36) // entries of the first table
  image.writeBigUInt64BE(first, 40)
  image.writeBigUInt64BE(refcountTable, 48)
  image.writeUInt32BE(1, 56)
  image.writeUInt32BE(4, 96) // refcounts have 16 bits
  image.writeUInt32BE(104, 100)
  image.writeBigUInt64BE(refcounts, Number(refcountTable))
  for (let at = 0; at < 5; at++) image.writeUInt16BE(1, Number(refcounts) + 2 * at)
  image.writeUInt16BE(count, Number(refcounts) + 2 * 5)
  const onlyUser = 1n << 63n
  image.writeBigUInt64BE(second | onlyUser, Number(first))
  for (let at = 0; at < count; at++) image.writeBigUInt64BE(data, Number(second) + 8 * at)
  image.fill('boom', Number(data))
  return image
}

test('an import that is aborted leaves nothing', async () => {
  const stop = new AbortController()
  answer = (_request, response) => void response.write('begin')
  const imported = run({}, { signal: stop.signal })
  imported.catch(() => {})
  await until(
    'the request',
    () => paths.length,
    (count) => count === 1,
  )
  stop.abort(new Error('deleted meanwhile'))
  await expect(imported).rejects.toThrow('deleted meanwhile')
  await isClean()
})

describe('the sandbox', () => {
  const limits = { memoryMebibytes: 256, cpuSeconds: 2, fileBytes: MEBIBYTE, timeoutMilliseconds: 30_000 }
  const shell = (script: string) => runSandboxed({ program: 'sh', input: ['-c', script], limits })

  test('has no secrets in its environment', async () => {
    process.env['SVCCLOUD_TEST_SECRET'] = SECRET
    expect(await shell('env')).not.toContain(SECRET)
    delete process.env['SVCCLOUD_TEST_SECRET']
  })

  test('gains no rights, and is nobody when the agent is root', async () => {
    const status = await shell('cat /proc/self/status')
    expect(status).toMatch(/^NoNewPrivs:\s1$/m)
    expect(status).toMatch(/^CapEff:\s0+$/m)
    if (!isRoot()) return
    expect(status).toMatch(new RegExp(`^Uid:\\s${NOBODY}\\s${NOBODY}\\s${NOBODY}\\s${NOBODY}$`, 'm'))
    expect(status).toMatch(/^CapBnd:\s0+$/m)
    expect(status).toMatch(/^Groups:\s*$/m)
  })

  test('has no network when the agent is root', async () => {
    if (!isRoot()) return
    const devices = (await shell('tail -n +3 /proc/net/dev')).trim().split('\n')
    expect(devices).toHaveLength(1) // its own loopback
  })

  test('cannot write more than it may', async () => {
    const path = join(folder, 'large')
    const written = runSandboxed({
      program: 'prlimit',
      input: ['--', 'sh', '-c', `dd if=/dev/zero of=${path} bs=1M count=4 2>/dev/null`],
      dropping: 'own',
      limits,
    })
    await expect(written).rejects.toThrow()
    expect((await stat(path)).size).toBeLessThanOrEqual(MEBIBYTE)
  })

  test('cannot take more memory than it may', async () => {
    const script = 'const kept = []; for (;;) kept.push(Buffer.alloc(16 * 1024 * 1024, 1))'
    const hungry = { memoryMebibytes: 512, cpuSeconds: 60, fileBytes: 0, timeoutMilliseconds: 50_000 }
    const ran = runSandboxed({ program: nodeBinary(), input: ['-e', script], dropping: 'own', limits: hungry })
    await expect(ran).rejects.toThrow(/SIG(ABRT|TRAP|SEGV|ILL)|failed/)
  })

  test('cannot compute for ever', async () => {
    await expect(shell('while :; do :; done')).rejects.toThrow('SIGKILL')
  })

  test('ends with what fetches when it is stopped', async () => {
    const stop = new AbortController()
    const ran = runSandboxed({ program: 'sleep', input: ['1000'], limits, signal: stop.signal })
    stop.abort()
    await expect(ran).rejects.toThrow()
  })
})
