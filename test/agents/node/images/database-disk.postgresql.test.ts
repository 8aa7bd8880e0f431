/** The disk with the data of a database: when a file system is made on it. A file stands for the disk. */
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { PYTHON } from '../../../python.ts'

const SCRIPTS = join(import.meta.dirname, '../../../../agents/node/images/managed')
const DISK_BYTES = 16 * 1024 ** 2
const SERIAL = 'serial'
const NOTE = 'file-system-begun'
/** The script as a whole, without what it does when it is called. */
const PROGRAM = `
import sys
exec(open(sys.argv[1] + "/machine").read().split("\\nif __name__ ==")[0])
sys.path.insert(0, sys.argv[1])
import database
try:
    database.have_file_system(sys.argv[2], sys.argv[3])
except Refused as error:
    print(error)`

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-disk-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const disk = () => join(folder, 'disk')

async function newDisk(beginning: string): Promise<void> {
  await writeFile(disk(), beginning)
  const file = await open(disk(), 'r+')
  await file.truncate(DISK_BYTES)
  await file.close()
}

/** Why it is refused; empty when there is a file system. */
async function haveFileSystem(): Promise<string> {
  const program = `import os\nos.environ["MACHINE_ROOT"] = ${JSON.stringify(folder)}\n${PROGRAM}`
  return (await runProgram(PYTHON, ['-c', program, SCRIPTS, disk(), SERIAL])).trim()
}

const fileSystemId = async (): Promise<string> =>
  (await runProgram('blkid', ['-p', '-o', 'value', '-s', 'UUID', disk()])).trim()

/** What a machine leaves that ended while it made a file system. */
async function noteBegun(serial: string): Promise<void> {
  await runProgram('mkdir', ['-p', join(folder, 'var/lib/svccloud')])
  await writeFile(join(folder, 'var/lib/svccloud', NOTE), JSON.stringify(serial))
}
const notes = (): Promise<readonly string[]> => readdir(join(folder, 'var/lib/svccloud'))

test('a blank disk gets one, once', async () => {
  await newDisk('')
  await runProgram('mkdir', ['-p', join(folder, 'var/lib/svccloud')])
  expect(await haveFileSystem()).toBe('')
  const made = await fileSystemId()
  expect(made).not.toBe('')
  expect(await haveFileSystem()).toBe('')
  expect(await fileSystemId()).toBe(made)
  expect(await notes()).toEqual([])
})

test.each([
  ['nobody here', undefined],
  ['a machine that was making one on another disk', 'other'],
])('what a disk holds stays, written by %s', async (_what, begun) => {
  await newDisk('something')
  if (begun !== undefined) await noteBegun(begun)
  const before = await readFile(disk())
  expect(await haveFileSystem()).toBe('the disk holds something else: no file system')
  expect((await readFile(disk())).equals(before)).toBe(true)
})

test('one that was not finished is created again', async () => {
  await newDisk('half of it')
  await noteBegun(SERIAL)
  expect(await haveFileSystem()).toBe('')
  expect(await fileSystemId()).not.toBe('')
  expect(await notes()).toEqual([])
})

test('one that was finished is kept, even if the completion was not reported', async () => {
  await newDisk('')
  await noteBegun(SERIAL)
  expect(await haveFileSystem()).toBe('')
  const made = await fileSystemId()
  await noteBegun(SERIAL)
  expect(await haveFileSystem()).toBe('')
  expect(await fileSystemId()).toBe(made)
  expect(await notes()).toEqual([])
})
