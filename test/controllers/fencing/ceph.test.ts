/** Access to Ceph as fencing takes and gives it back, with a program in the place of `ceph` that plays a cluster: it
 *  holds the blocklist in a file, lists it as Ceph does, wants the key in the environment and writes down its
 *  arguments. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CephOptions, openCeph } from '../../../controllers/fencing/ceph.ts'
import { StorageAccessFailed } from '../../../controllers/fencing/storage-access.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

const PROGRAM = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> log
[ "$CEPH_ARGS" = '--key=c2VjcmV0' ] || {
  echo 'monclient(hunting): handle_auth_bad_method server allowed_methods [2]' >&2
  echo 'timed out' >&2
  exit 1
}
[ -e refusal ] && { cat refusal >&2; exit 1; }
while [ "$1" != blocklist ]; do shift; done
shift
[ "$1" = range ] && shift
case "$1" in
  add) [ -e deaf ] || grep -q "^$2 " ranges || echo "$2 $3" >> ranges; echo "blocklisting cidr:$2 until ..." >&2 ;;
  rm) sed -i "\\,^$2 ,d" ranges; echo "un-blocklisting cidr:$2" >&2 ;;
  ls) echo
      printf '[{"addr":"[2001:db8::9]:0/0","until":"2106-02-07T06:28:15.883497+0000"}]['
      comma=
      while read -r range seconds; do
        [ -e short ] && seconds=3600
        address=$(echo "\${range%/*}"); case "$address" in *:*) address="[$address]" ;; esac
        until=$(date -u -d "+$seconds seconds" +%Y-%m-%dT%H:%M:%S.000000+0000)
        printf '%s{"range":"%s:0/%s","until":"%s"}' "$comma" "$address" "\${range#*/}" "$until"
        comma=,
      done < ranges
      printf ']'; echo 'listed 2 entries' >&2 ;;
esac
`
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ceph-'))
  await writeFile(join(folder, 'ceph'), PROGRAM)
  await chmod(join(folder, 'ceph'), 0o755)
  await writeFile(join(folder, 'ranges'), '')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const open = (changes: Partial<CephOptions> = {}) =>
  openCeph({
    monitors: '192.0.2.1,[2001:db8::1]:6789',
    username: 'fence',
    key: 'c2VjcmV0',
    addresses: ['192.0.2.7', '2001:DB8:0::7'],
    clock: systemClock,
    program: join(folder, 'ceph'),
    ...changes,
  })
const held = async (file: string) => (await readFile(join(folder, file), 'utf8')).trim().split('\n')

describe('storage of Ceph', () => {
  it('serves a host no more, by any address and for years, until it is given back', async () => {
    await open().take()
    expect(await held('ranges')).toEqual(['192.0.2.7/32 315360000', '2001:db8::7/128 315360000'])
    await open().take()
    await open().giveBack()
    expect(await held('ranges')).toEqual([''])
    await open().giveBack()
  })

  it('leaves other hosts as they are', async () => {
    await writeFile(join(folder, 'ranges'), '192.0.2.8/32 60\n')
    await open().take()
    await open().giveBack()
    expect(await held('ranges')).toEqual(['192.0.2.8/32 60'])
  })

  it('that does not list the host has not acknowledged it', async () => {
    await writeFile(join(folder, 'deaf'), '')
    await expect(open().take()).rejects.toThrow('does not list 192.0.2.7/32 and 2001:db8::7/128 as blocked')
  })

  it('that listed it for an hour only lists it for years: a host that was cut off would write again', async () => {
    await writeFile(join(folder, 'ranges'), '192.0.2.7/32 3600\n2001:db8::7/128 315000000\n')
    await open().take()
    expect(await held('ranges')).toEqual(['2001:db8::7/128 315000000', '192.0.2.7/32 315360000'])
  })

  it('that lists it for an hour only has not acknowledged it', async () => {
    await writeFile(join(folder, 'short'), '')
    await expect(open().take()).rejects.toThrow('does not list 192.0.2.7/32 and 2001:db8::7/128 as blocked')
  })

  it('that lists a wider range, or another host, has not acknowledged it', async () => {
    await writeFile(join(folder, 'deaf'), '')
    await writeFile(join(folder, 'ranges'), '192.0.2.0/24 315360000\n192.0.2.70/32 315360000\n')
    await expect(open({ addresses: ['192.0.2.7'] }).take()).rejects.toThrow(StorageAccessFailed)
  })

  it('without a quorum proves nothing', async () => {
    await writeFile(join(folder, 'refusal'), 'timed out\n')
    await expect(open().take()).rejects.toThrow('have no quorum')
    await expect(open().giveBack()).rejects.toThrow('have no quorum')
  })

  it('says why it refuses', async () => {
    await writeFile(join(folder, 'refusal'), '2026-01-01 7f -1 something\nError EACCES: access denied\n')
    await expect(open().take()).rejects.toThrow('The storage refuses: Error EACCES: access denied')
  })

  it('learns the key by the environment, which nobody else reads', async () => {
    await open().take()
    const log = (await held('log')).join('\n')
    expect(log).toContain(
      '--mon-host 192.0.2.1,[2001:db8::1]:6789 --name client.fence --connect-timeout 5 --rados-mon-op-timeout 8 ' +
        'osd blocklist range add 192.0.2.7/32 315360000',
    )
    expect(log).not.toContain('c2VjcmV0')
    await expect(open({ key: 'd3Jvbmc=' }).take()).rejects.toThrow('do not let the client in')
  })

  it('needs the program', async () => {
    await expect(open({ program: join(folder, 'missing') }).take()).rejects.toThrow('is not installed')
  })

  it.each<readonly [string, Partial<CephOptions>]>([
    ['an address that is none', { addresses: ['192.0.2.0/24'] }],
    ['a name', { addresses: ['host-7'] }],
    ['no address', { addresses: [] }],
    ['monitors that are an option', { monitors: '--conf=/etc/passwd' }],
    ['two words', { monitors: 'a b' }],
    ['a client that is an option', { username: '-x' }],
    ['a key with another option', { key: 'a --conf /etc/passwd' }],
    ['no key', { key: '' }],
  ])('is not asked with %s', (_what, changes) => expect(() => open(changes)).toThrow(StorageAccessFailed))
})
