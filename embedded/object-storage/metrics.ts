/** What the door counts. Labels are bounded: operations, actions, classes of statuses, codes of refusals. */
import { Counter, Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { Operation } from '../../kit/s3/operation.ts'
import type { Tenants } from './tenants.ts'

export interface DoorMetrics {
  admitted(operation: Pick<Operation, 'name' | 'rule'>): void
  answered(status: number): void
  refused(code: string): void
  received(bytes: number): void
  sent(bytes: number): void
}

export interface Watched {
  readonly tenants: Pick<Tenants, 'all'>
  readonly isEngineUp: () => Promise<boolean>
}

export function openDoorMetrics(registry: Registry, { tenants, isEngineUp }: Watched): DoorMetrics {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `svccloud_object_storage_${name}`, help, labelNames, registers })
  const requests = counter(
    'requests_total',
    'Requests that were handed to the engine, by operation and by what it does',
    ['operation', 'action'],
  )
  const answers = new Counter({
    name: 'svccloud_object_storage_responses_total',
    help: 'Answers of the engine, by class of status',
    labelNames: ['class'],
    registers,
  })
  const refusals = new Counter({
    name: 'svccloud_object_storage_refusals_total',
    help: 'Requests that the door refused, by code',
    labelNames: ['code'],
    registers,
  })
  const received = counter('received_bytes_total', 'Bytes of bodies from clients')
  const sent = counter('sent_bytes_total', 'Bytes of bodies to clients')
  new Gauge({
    name: 'svccloud_object_storage_up',
    help: '1 while the engine answers',
    registers,
    async collect() {
      this.set((await isEngineUp()) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'svccloud_object_storage_used_bytes',
    help: 'What all tenants store, at most',
    registers,
    collect() {
      this.set(tenants.all().reduce((sum, { usage }) => sum + usage.bytes(), 0))
    },
  })
  new Gauge({
    name: 'svccloud_object_storage_tenants',
    help: 'Tenants, by whether they may add anything',
    labelNames: ['state'],
    registers,
    collect() {
      const all = tenants.all()
      const suspended = all.filter(({ isSuspended }) => isSuspended).length
      this.set({ state: 'suspended' }, suspended)
      this.set({ state: 'active' }, all.length - suspended)
    },
  })
  return {
    admitted: ({ name, rule }) => requests.inc({ operation: name, action: rule.class }),
    answered: (status) => answers.inc({ class: `${Math.floor(status / 100)}xx` }),
    refused: (code) => refusals.inc({ code }),
    received: (bytes) => received.inc(bytes),
    sent: (bytes) => sent.inc(bytes),
  }
}
