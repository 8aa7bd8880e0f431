/** The contract of object stores, for a folder and for S3, and what each does on its own. */
import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openFolderStore } from '../../../kit/chunks/folder-store.ts'
import { openStoreAt } from '../../../kit/chunks/locate.ts'
import { type ObjectStore, StoreAway, StoreFailed } from '../../../kit/chunks/object-store.ts'
import { openS3Store } from '../../../kit/chunks/s3-store.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { type HostileS3, startHostileS3 } from './hostile-s3.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const newFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-store-'))
  ends.push(() => rm(folder, { recursive: true }))
  return folder
}
const newS3 = async (): Promise<{ server: HostileS3; store: ObjectStore }> => {
  const server = await startHostileS3()
  ends.push(() => server.close())
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'us-east-1' }
  return { server, store: openS3Store({ url: new URL(`${server.url}/some/place`), credentials, clock: systemClock }) }
}

const namesIn = async (store: ObjectStore, prefix: string): Promise<string[]> => {
  const names: string[] = []
  for await (const { name } of store.list(prefix)) names.push(name)
  return names.sort()
}

describe.each([
  ['folder', async () => openFolderStore(join(await newFolder(), 'repository'))],
  ['S3', async () => (await newS3()).store],
])('an object store in a %s', (_kind, openStore) => {
  it('keeps bytes by name, replaces and removes them', async () => {
    const store = await openStore()
    expect(await store.get('c/a', 100)).toBeUndefined()
    await store.put('c/a', Buffer.from('one'))
    await store.put('c/a', Buffer.from('two'))
    const found = await store.get('c/a', 100)
    expect(found?.bytes.toString()).toBe('two')
    expect(Math.abs(Date.now() - (found?.modifiedAt.getTime() ?? 0))).toBeLessThan(60_000)
    await store.remove('c/a')
    await store.remove('c/a')
    expect(await store.get('c/a', 100)).toBeUndefined()
  })

  it('lists what starts with a prefix, over all its pages', async () => {
    const store = await openStore()
    expect(await namesIn(store, 'c/')).toEqual([])
    const names = ['c/a1', 'c/a2', 'c/a3', 'c/a4', 'c/b1', 'c/b2', 'c/b3']
    for (const name of [...names, 'm/a1']) await store.put(name, Buffer.from(name))
    expect(await namesIn(store, 'c/')).toEqual(names)
    expect(await namesIn(store, 'c/a')).toEqual(names.slice(0, 4))
  })

  it('refuses names that lead elsewhere, and answers that are too long', async () => {
    const store = await openStore()
    await store.put('c/a', Buffer.alloc(50))
    await expect(store.get('c/a', 49)).rejects.toThrow(StoreFailed)
    for (const name of ['c/../a', '../a', 'c/', 'c/A', '/c/a']) {
      await expect(async () => store.put(name, Buffer.alloc(1))).rejects.toThrow('no name of an object')
      await expect(async () => store.get(name, 1)).rejects.toThrow('no name of an object')
    }
  })
})

it('a folder leaves out what a killed writer left', async () => {
  const folder = await newFolder()
  const store = openFolderStore(folder)
  await store.put('c/a', Buffer.from('a'))
  await writeFile(join(folder, 'c', 'b.Xy12.new'), 'half')
  expect(await namesIn(store, 'c/')).toEqual(['c/a'])
  expect(await readdir(join(folder, 'c'))).toHaveLength(2)
})

it('a folder that cannot be read is a failure, not an absence', async () => {
  const folder = await newFolder()
  const store = openFolderStore(folder)
  await store.put('c/a', Buffer.from('a'))
  await truncate(join(folder, 'c', 'a'), 0)
  expect((await store.get('c/a', 10))?.bytes).toHaveLength(0)
  const file = join(folder, 'file')
  await writeFile(file, '')
  await expect(openFolderStore(file).put('c/a', Buffer.alloc(1))).rejects.toThrow(StoreFailed)
})

it('S3 fails on everything that is not an honest answer', async () => {
  const { server, store } = await newS3()
  await store.put('c/a', Buffer.from('content of some length'))
  server.fault = () => 'error'
  await expect(store.get('c/a', 100)).rejects.toThrow(/status 500.*InternalError/)
  await expect(store.put('c/a', Buffer.alloc(3))).rejects.toThrow(StoreFailed)
  await expect(store.remove('c/a')).rejects.toThrow(StoreFailed)
  await expect(namesIn(store, 'c/')).rejects.toThrow(StoreFailed)
  server.fault = () => 'short'
  await expect(store.get('c/a', 100)).rejects.toThrow(StoreFailed)
  server.fault = () => 'wrong'
  await expect(store.put('c/b', Buffer.from('b'))).rejects.toThrow('holds other bytes')
})

it('S3 takes a missing bucket for a failure, never for an empty one', async () => {
  const server = await startHostileS3('other')
  ends.push(() => server.close())
  const url = new URL('/backups', server.url)
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'us-east-1' }
  const store = openS3Store({ url, credentials, clock: systemClock })
  await expect(store.get('c/a', 10)).rejects.toThrow('NoSuchBucket')
  await expect(namesIn(store, 'c/')).rejects.toThrow('NoSuchBucket')
})

it('a place is a folder or a bucket, with a separate part for each account', async () => {
  const folder = await newFolder()
  await openStoreAt({ location: folder, environment: {}, clock: systemClock }, 'acct').put('c/a', Buffer.from('a'))
  expect(await readdir(join(folder, 'acct', 'c'))).toEqual(['a'])
  const { server } = await newS3()
  const location = `${server.url}/`
  expect(() => openStoreAt({ location, environment: {}, clock: systemClock })).toThrow('AWS_ACCESS_KEY_ID')
  const environment = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-1' }
  await openStoreAt({ location, environment, clock: systemClock }, 'acct').put('c/a', Buffer.from('a'))
  expect([...server.objects.keys()]).toEqual(['acct/c/a'])
  expect(server.requests[0]?.headers.authorization).toContain('/eu-1/s3/aws4_request')
})

describe('signatures are those of the examples in the API reference of S3', () => {
  const credentials = {
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    region: 'us-east-1',
  }
  const at = new Date('2013-05-24T00:00:00Z')
  const host = 'https://examplebucket.s3.amazonaws.com'
  it.each([
    [
      'GET an object',
      { method: 'GET', url: new URL(`${host}/test.txt`), headers: { range: 'bytes=0-9' } },
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      'PUT an object',
      {
        method: 'PUT',
        url: new URL(`${host}/test%24file.text`),
        headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
        body: Buffer.from('Welcome to Amazon S3.'),
      },
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
    [
      'GET a list',
      { method: 'GET', url: new URL(`${host}/?max-keys=2&prefix=J`) },
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ],
  ] as const)('%s', (_what, request, signature) => {
    expect(signRequest(request, credentials, at)['authorization']).toMatch(new RegExp(`Signature=${signature}$`))
  })
})

it('a list whose pages have no end is a failure of the server', async () => {
  const { server, store } = await newS3()
  for (const name of ['c/a1', 'c/a2', 'c/a3', 'c/a4']) await store.put(name, Buffer.from(name))
  server.fault = () => 'endless'
  await expect(namesIn(store, 'c/')).rejects.toThrow(StoreFailed)
})

it('a server that is temporarily unable is distinguished from one that refuses', async () => {
  const { server, store } = await newS3()
  const failure = () => store.put('c/a', Buffer.from('a')).catch((error: unknown) => error)
  server.fault = () => 'error'
  expect(await failure()).toBeInstanceOf(StoreAway)
  await server.close()
  ends.length = 0
  expect(await failure()).toBeInstanceOf(StoreAway)
  const other = await newS3()
  const nowhere = openS3Store({
    url: new URL(other.server.url.href.replace('backups', 'nowhere')),
    credentials: { accessKeyId: 'id', secretAccessKey: 'secret', region: 'us-east-1' },
    clock: systemClock,
  })
  const refused = await nowhere.put('c/a', Buffer.from('a')).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StoreFailed)
  expect(refused).not.toBeInstanceOf(StoreAway)
})
