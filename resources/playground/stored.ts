/** Playground: a free Kubernetes cluster for a few hours, as it is stored. */
import { z } from 'zod'
import { END_REASONS, PLAYGROUND_STATES } from '../../domain/playground/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration } from '../kit/shapes.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })
const URL_LENGTH_MAXIMUM = 300

export const Playground = resource({
  kind: 'Playground',
  plural: 'playgrounds',
  shortNames: ['pg'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A free Kubernetes cluster for a few hours, with a control plane and its own guest. Deleting the object ends ' +
    'it. The API returns the kubeconfig.',
  spec: z
    .strictObject({
      region: z.string().min(1).max(63).describe('Region of the playground. Cannot be changed.'),
    })
    .describe('The desired state of the playground.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      name: z.string().max(63).optional().describe('Its name in the API: pg- and ten hexadecimal digits.'),
      state: z.enum(PLAYGROUND_STATES).optional().describe('State of the playground.'),
      isSimulated: z.boolean().optional().describe('Whether its host only simulates it: nobody can sign in.'),
      endpoint: z.string().max(URL_LENGTH_MAXIMUM).optional().describe('URL of its API, once it is ready.'),
      appDomain: z.string().max(253).optional().describe('Wildcard domain of its Ingresses.'),
      expiresAt: Instant.optional().describe('Time of its automatic end.'),
      endReason: z.enum(END_REASONS).optional().describe('Reason for its end.'),
      detail: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable description of what it waits for; absent when it waits for nothing.'),
    })
    .describe('Observed state of the playground. Written by its controller.'),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [fixed('region')],
})
export type PlaygroundSpec = z.infer<typeof Playground.spec>
export type PlaygroundStatus = z.infer<typeof Playground.status>
