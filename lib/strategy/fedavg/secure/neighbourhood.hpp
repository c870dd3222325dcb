#pragma once

namespace stratagem {

/// Which clients of a round share masks: places on a ring, each with as many on its one side as on
/// its other (a regular graph, as in SecAgg+, Bell et al., CCS 2020), or
/// with all. A secret is shared among its owner and these, its members.
class Neighbourhood {
 public:
  /// `neighbours`: of each, even; 0: all others. `threshold`: members whose shares rebuild a
  /// secret; 0: two thirds of them, rounded up.
  Neighbourhood(int parties, int neighbours, int threshold)
      : parties_(parties),
        neighbours_(neighbours > 0 ? neighbours : parties - 1),
        threshold_(threshold > 0 ? threshold : (2 * members() + 2) / 3) {}

  int parties() const { return parties_; }
  int neighbours() const { return neighbours_; }
  int members() const { return neighbours_ + 1; }
  int threshold() const { return threshold_; }

  /// Who holds the share at this point, 1 to members(), of what `owner` shares.
  int member(int owner, int point) const {
    return (owner + parties_ + point - 1 - neighbours_ / 2) % parties_;
  }
  /// The point at which `holder` holds a share; 0 where it is no member.
  int point_of(int owner, int holder) const {
    int const point = (holder - owner + parties_ + neighbours_ / 2) % parties_ + 1;
    return point <= members() ? point : 0;
  }
  bool is_place(int place) const { return place >= 0 && place < parties_; }

 private:
  int parties_, neighbours_, threshold_;
};

}  // namespace stratagem
