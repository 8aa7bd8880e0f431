import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bootSector } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { writeCpio } from '../../../agents/node/images/cpio.ts'
import { writeIso } from '../../../agents/node/images/iso9660.ts'

describe('a cpio archive', () => {
  const archive = writeCpio([
    { path: 'etc', kind: 'folder' },
    { path: 'etc/name', kind: 'file', content: Buffer.from('web-1\n'), mode: 0o600 },
    { path: 'etc/other', kind: 'link', target: 'name' },
  ])

  it('is what cpio reads', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svccloud-cpio-'))
    try {
      execFileSync('cpio', ['-i', '--quiet'], { cwd: folder, input: archive })
      expect(readFileSync(join(folder, 'etc/other'), 'utf8')).toBe('web-1\n')
    } catch (error) {
      // a machine without cpio has the kernel's own test: a guest that boots
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is aligned, ends with the trailer and is the same every time', () => {
    expect(archive.length % 4).toBe(0)
    expect(archive.subarray(0, 6).toString()).toBe('070701')
    expect(archive.includes('TRAILER!!!')).toBe(true)
    expect(writeCpio([])).toEqual(writeCpio([]))
  })
})

/** Reads the image as ECMA-119 tells, from the volume descriptor down. */
function readIso(image: Buffer): { label: string; files: Record<string, string> } {
  const descriptor = image.subarray(16 * 2048, 17 * 2048)
  expect(descriptor.subarray(0, 7)).toEqual(Buffer.from('\x01CD001\x01', 'latin1'))
  expect(descriptor.readUInt32LE(80) * 2048).toBe(image.length)
  const root = descriptor.readUInt32LE(156 + 2) * 2048
  const files: Record<string, string> = {}
  for (let at = root; image[at] !== 0; at += image[at] ?? 0) {
    const identifier = image.subarray(at + 33, at + 33 + (image[at + 32] ?? 0)).toString('latin1')
    expect(image.readUInt32LE(at + 2)).toBe(image.readUInt32BE(at + 6))
    const start = image.readUInt32LE(at + 2) * 2048
    if (identifier.length > 1) files[identifier] = image.subarray(start, start + image.readUInt32LE(at + 10)).toString()
  }
  return { label: descriptor.subarray(40, 72).toString('latin1').trimEnd(), files }
}

describe('an ISO image', () => {
  it('holds its files under its label', () => {
    const long = 'x'.repeat(65_536)
    expect(
      readIso(
        writeIso('cidata', {
          'user-data': Buffer.from(long),
          'meta-data': Buffer.from('a: b\n'),
          empty: Buffer.alloc(0),
        }),
      ),
    ).toEqual({
      label: 'cidata',
      files: { 'EMPTY.;1': '', 'META-DATA.;1': 'a: b\n', 'USER-DATA.;1': long },
    })
  })

  it('is the same for the same input, in any order', () => {
    const [a, b] = [Buffer.from('a'), Buffer.from('b')]
    expect(writeIso('cidata', { a, b })).toEqual(writeIso('cidata', { b, a }))
  })

  it('refuses what does not fit its one folder', () => {
    expect(() =>
      writeIso('cidata', Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`f${index}`, Buffer.alloc(1)]))),
    ).toThrow('too many files')
  })
})

it('a boot sector is one sector with its signature', () => {
  const sector = bootSector('marker')
  expect([sector.length, sector.readUInt16LE(510), sector.includes('marker\0')]).toEqual([512, 0xaa55, true])
})
