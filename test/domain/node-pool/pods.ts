/** Pods as the autoscaler judges them. */
import type { LoadPod } from '../../../domain/node-pool/autoscaling/load.ts'

/** It waits for room, and nothing binds it to a node. */
export const WAITING = {
  node: '',
  isUnschedulable: true,
  selector: {},
  affinity: [],
  tolerations: [],
  hostPorts: [],
  apart: [],
  isOfNode: false,
  stays: '',
  budgets: [],
  isJudged: true,
} satisfies Omit<LoadPod, 'name' | 'requests'>
