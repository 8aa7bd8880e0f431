import { expect, test } from 'vitest'
import { guestCommand } from '../../../../embedded/control-planes/guests/machine.ts'

test('a guest reaches two ports of its control plane, and no network', () => {
  const words = guestCommand({
    ...{ folder: '/guest', commandLine: 'root=/dev/vda', hasKvm: false, userId: 1_000_001, vcpus: 2 },
    ...{ memoryMebibytes: 1_536, ports: { api: 20_001, tunnel: 20_002 } },
  })
  const networks = words.flatMap((word, index) => (word === '-netdev' ? [words[index + 1]] : []))
  expect(networks).toEqual([
    'user,id=net,restrict=on,ipv6=off,' +
      'guestfwd=tcp:10.0.2.100:6443-cmd:socat -T3600 - TCP4:127.0.0.1:20001,' +
      'guestfwd=tcp:10.0.2.100:8132-cmd:socat -T3600 - TCP4:127.0.0.1:20002',
  ])
  // Whoever breaks out of it is nobody, and cannot become anybody: what is behind the doors is begun by setsid, so that
  // QEMU's own filter of that cannot be asked for.
  expect(words).toEqual(expect.arrayContaining(['--no-new-privs', '--reuid=1000001', '--clear-groups']))
  expect(words).toContain('on,obsolete=deny,resourcecontrol=deny')
})
