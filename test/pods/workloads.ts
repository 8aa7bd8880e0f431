/** What runs in clusters of tests: pods of nothing but the program that holds one. */
import { PAUSE_IMAGE } from '../../domain/kubernetes-cluster/versions.ts'

export interface Workload {
  readonly name: string
  readonly replicas: number
  readonly cpu: string
  readonly more?: object
}

export const deployment = ({ name, replicas, cpu, more = {} }: Workload): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name, image: PAUSE_IMAGE, resources: { requests: { cpu, memory: '16Mi' } } }],
        ...more,
      },
    },
  },
})
