import { expect, it } from 'vitest'
import {
  startMigrationDriver,
  type MigrationDriver,
} from '../../../agents/node/drivers/hypervisor/qemu-migration-driver.ts'
import { type Qmp, QmpError } from '../../../agents/node/drivers/hypervisor/qmp.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'

/** A QEMU that has paused its guest. Its event of that arrives after the answer to the first query and before the
 *  handover has its answer: events and answers share a connection. */
it.each([0, 1])('hands a guest over once, also when %i answers after the order do not show it yet', async (late) => {
  const commands: string[] = []
  let status = 'pre-switchover'
  let driver: MigrationDriver | undefined
  let isOrdered = false
  let queriesLeft = late
  const qmp: Qmp = {
    async execute(command) {
      commands.push(command)
      await Promise.resolve()
      if (command === 'query-migrate') {
        const answer = { status }
        if (isOrdered && queriesLeft-- === 0) status = 'device'
        else if (status === 'device') status = 'completed'
        return answer
      }
      if (command === 'query-status') return { status: 'postmigrate' }
      if (command !== 'migrate-continue') return []
      if (status !== 'pre-switchover') throw new QmpError('GenericError', `Migration not in expected state: ${status}`)
      isOrdered = true
      if (queriesLeft-- === 0) status = 'device'
      driver?.wake({ name: 'MIGRATION', data: { status: 'pre-switchover' } })
      return {}
    },
    close: () => undefined,
  }
  const end = await new Promise((resolve) => {
    driver = startMigrationDriver({
      qmp,
      move: {
        role: 'send',
        id: 'op',
        attempt: 1,
        mirroredDisks: [],
        beganAt: '2030-01-01T00:00:00.000Z',
        host: 'h',
        port: 1,
        isStarted: true,
      },
      clock: systemClock,
      log: silentLog,
      persist: () => Promise.resolve(),
      report: ({ phase }) => {
        if (phase === 'completed' || phase === 'failed') resolve(phase)
      },
      isGuestOff: () => false,
      isDetached: () => false,
    })
  })
  expect(end).toBe('completed')
  expect(commands.filter((command) => command === 'migrate-continue')).toEqual(['migrate-continue'])
})
