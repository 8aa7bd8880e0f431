/** Playground: a Kubernetes cluster of a few hours that costs nothing, as it is stored. */
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
    'A free Kubernetes cluster of a few hours: a control plane and its own guest. Deleting it ends it. How to ' +
    'get into it is read through the API.',
  spec: z
    .strictObject({
      region: z.string().min(1).max(63).describe('Region that it runs in. Cannot be changed.'),
    })
    .describe('The desired state of the playground.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      name: z.string().max(63).optional().describe('Its name in the API: pg- and ten hexadecimal digits.'),
      state: z.enum(PLAYGROUND_STATES).optional().describe('How far it is.'),
      isSimulated: z.boolean().optional().describe('Whether its host only counts: nobody gets into it.'),
      endpoint: z.string().max(URL_LENGTH_MAXIMUM).optional().describe('URL of its API, once it is ready.'),
      appDomain: z.string().max(253).optional().describe('Wildcard under which its Ingresses are served.'),
      expiresAt: Instant.optional().describe('When it ends by itself.'),
      endReason: z.enum(END_REASONS).optional().describe('Why it has ended.'),
      detail: z.string().max(1024).optional().describe('What it waits for, for people; absent when for nothing.'),
    })
    .describe('What the playground is. Written by its controller.'),
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
