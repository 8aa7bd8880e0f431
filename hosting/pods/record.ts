/** The record of a control plane in pods. */
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'
import { newPlaneRecord, PlaneRecord } from '../core/record.ts'
import type { HostSettings } from './settings.ts'

export const PodsRecord = PlaneRecord.extend({
  /** The values at its creation: volumes do not change with settings. */
  storage: z.object({ className: z.string().optional(), mebibytes: z.int() }),
  /** The node port that clients knew before it was lost; null for any. */
  nodePort: z.int().nullable(),
  /** Number of replacements of its reader; each changes the reader's manifest. */
  readers: z.int().default(0),
})
export type PodsRecord = z.infer<typeof PodsRecord>

export const newRecord = (
  desired: ControlPlaneDesired,
  { storage: { className, mebibytesOfOne } }: HostSettings,
  nodePort: number | null,
): PodsRecord => ({
  ...newPlaneRecord(desired),
  nodePort,
  readers: 0,
  storage: { ...defined({ className }), mebibytes: mebibytesOfOne },
})
